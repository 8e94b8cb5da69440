from email import message_from_string

text = "From: Ada <ada@example.org>\nTo: bo@example.com\nSubject: Hello\n\nFirst line.\nSecond.\n"
message = message_from_string(text)
print(message["subject"], "|", message["from"])
message.get_payload().splitlines()

#: prints
#| Hello | Ada <ada@example.org>
#: value
#| ["First line.", "Second."]
