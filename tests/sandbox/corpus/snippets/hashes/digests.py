import hashlib

data = b"hello"
print(hashlib.sha256(data).hexdigest()[:16], hashlib.md5(data).hexdigest()[:8])
running = hashlib.sha1()
for part in (b"hel", b"lo"):
    running.update(part)
running.hexdigest() == hashlib.sha1(data).hexdigest()

#: prints
#| 2cf24dba5fb0a30e 5d41402a
#: value
#| true
