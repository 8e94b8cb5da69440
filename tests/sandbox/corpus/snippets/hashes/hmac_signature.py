import hashlib
import hmac

signature = hmac.new(b"key", b"message", hashlib.sha256).hexdigest()
(signature[:12], hmac.compare_digest(signature, signature[:-1] + "0"))

#: value
#| ["6e9ef29b75ff", false]
