import gzip
import zlib

data = b"repeat " * 1000
packed = gzip.compress(data)
(len(packed) < 100, gzip.decompress(packed) == data, zlib.crc32(b"hello"), zlib.decompress(zlib.compress(data)) == data)

#: value
#| [true, true, 907060870, true]
