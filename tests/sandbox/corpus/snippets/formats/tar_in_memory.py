import io
import tarfile

buffer = io.BytesIO()
with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
    for name, text in (("one.txt", b"1"), ("two.txt", b"22")):
        info = tarfile.TarInfo(name)
        info.size = len(text)
        archive.addfile(info, io.BytesIO(text))
buffer.seek(0)
with tarfile.open(fileobj=buffer) as archive:
    contents = {m.name: archive.extractfile(m).read().decode() for m in archive}
contents

#: value
#| {"one.txt": "1", "two.txt": "22"}
