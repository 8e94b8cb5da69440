import io
import zipfile

buffer = io.BytesIO()
with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("a.txt", "alpha " * 100)
    archive.writestr("dir/b.txt", "beta")
with zipfile.ZipFile(io.BytesIO(buffer.getvalue())) as archive:
    for info in archive.infolist():
        print(info.filename, info.file_size, info.compress_size < info.file_size)
    print(archive.read("dir/b.txt").decode())

#: prints
#| a.txt 600 True
#| dir/b.txt 4 False
#| beta
