import os
import tempfile
from pathlib import Path

with tempfile.TemporaryDirectory() as folder:
    root = Path(folder)
    for name in ("a.txt", "b.csv", "sub/c.txt", "sub/deep/d.txt"):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    texts = sorted(p.relative_to(root).as_posix() for p in root.rglob("*.txt"))
    sizes = {os.path.basename(base): len(files) for base, _, files in os.walk(root / "sub")}
(texts, sizes)

#: value
#| [["a.txt", "sub/c.txt", "sub/deep/d.txt"], {"sub": 1, "deep": 1}]
