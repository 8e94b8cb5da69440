def connect(host, /, port=80, *, secure=False):
    return f"{'https' if secure else 'http'}://{host}:{port}"

print(connect("a"), connect("b", 8080, secure=True))
try:
    connect("c", 80, True)
except TypeError as error:
    print("TypeError")

#: prints
#| http://a:80 https://b:8080
#| TypeError
