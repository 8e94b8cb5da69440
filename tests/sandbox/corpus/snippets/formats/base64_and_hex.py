import base64
import binascii

data = "Grüße".encode()
encoded = base64.b64encode(data).decode()
print(encoded, base64.b64decode(encoded).decode())
(binascii.hexlify(data).decode(), base64.urlsafe_b64encode(b"\xff\xfe").decode(), bytes.fromhex("4869").decode())

#: prints
#| R3LDvMOfZQ== Grüße
#: value
#| ["4772c3bcc39f65", "__4=", "Hi"]
