import struct

record = struct.Struct("<HIf4s")
packed = record.pack(7, 100_000, 1.5, b"abcd")
number, large, ratio, tag = record.unpack(packed)
(record.size, number, large, ratio, tag.decode())

#: value
#| [14, 7, 100000, 1.5, "abcd"]
