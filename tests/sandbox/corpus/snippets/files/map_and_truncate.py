import mmap
import os
import tempfile

path = os.path.join(tempfile.mkdtemp(), "log.txt")
with open(path, "w") as file:
    file.write("first second third")
with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
    mapped[:5] = b"FIRST"
    mapped.flush()
os.truncate(path, 12)
open(path).read()

#: value
#| "FIRST second"
