import io

stream = io.StringIO("one\ntwo\nthree\n")
first = stream.readline().strip()
rest = [line.strip() for line in stream]
raw = io.BytesIO()
raw.write("ü".encode())
print(first, rest, raw.getvalue(), sep="|")
print("no newline", end="")
print()

#: prints
#| one|['two', 'three']|b'\xc3\xbc'
#| no newline
