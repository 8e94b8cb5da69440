data = bytearray(b"hello")
data[0] = ord("J")
data.extend(b"!!")
view = memoryview(bytes(data))
(data.decode(), view[1:3].tobytes().decode(), list(b"\x00\xff"), b"a,b".split(b",")[1].decode())

#: value
#| ["Jello!!", "el", [0, 255], "b"]
