import tempfile
from pathlib import Path

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "notes.txt"
    path.write_text("one\ntwo\n", encoding="utf-8")
    with path.open("a", encoding="utf-8") as file:
        file.write("three\n")
    lines = path.read_text(encoding="utf-8").splitlines()
    names = sorted(p.name for p in Path(folder).iterdir())
(lines, names, path.exists())

#: value
#| [["one", "two", "three"], ["notes.txt"], false]
