import os
import shutil
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
(folder / "a").mkdir()
(folder / "a" / "notes.txt").write_text("one two", encoding="utf-8")
os.utime(folder / "a" / "notes.txt", (1_000_000_000, 1_000_000_000))
shutil.copytree(folder / "a", folder / "b")
shutil.copy2(folder / "b" / "notes.txt", folder / "c.txt")
shutil.move(folder / "c.txt", folder / "d.txt")
copied = folder / "d.txt"
(copied.read_text(encoding="utf-8"), int(copied.stat().st_mtime), sorted(p.name for p in folder.iterdir()))

#: value
#| ["one two", 1000000000, ["a", "b", "d.txt"]]
