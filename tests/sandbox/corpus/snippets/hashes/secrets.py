import secrets
import string

alphabet = string.ascii_letters + string.digits
password = "".join(secrets.choice(alphabet) for _ in range(16))
(len(password), set(password) <= set(alphabet), len(secrets.token_hex(8)), secrets.token_bytes(4) != secrets.token_bytes(4))

#: value
#| [16, true, 16, true]
