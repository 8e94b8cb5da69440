"""Build sdist and wheel into `dist/`, and show that building again gives the same bytes.

usage: build_dist.py [FOLDER]    the folder is emptied first; `dist` by default
"""

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Build both files, then the wheel from the sdist, and compare."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").resolve()
    shutil.rmtree(target, ignore_errors=True)
    first = build(ROOT, target)
    with tempfile.TemporaryDirectory() as folder:
        again = build(ROOT, Path(folder) / "again")
        expect_same(first, again, "building twice")
        [sdist] = target.glob("*.tar.gz")
        unpacked = unpack(sdist, Path(folder) / "sdist")
        from_sdist = build(unpacked, Path(folder) / "wheel", "wheel")
        expect_same({n: d for n, d in first.items() if n.endswith(".whl")}, from_sdist, "the sdist")
    for name, digest in sorted(first.items()):
        print(f"dist: {name}, {(target / name).stat().st_size / 1e6:.1f} MB, sha256 {digest}")


def build(source: Path, target: Path, *kinds: str) -> dict[str, str]:
    """Build `source` into `target`; return the digest of each file."""
    options = [part for kind in kinds or ("sdist", "wheel") for part in ("-t", kind)]
    command = [sys.executable, "-m", "hatchling", "build", *options, "-d", str(target)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"dist: {done.stderr.strip().splitlines()[-1]}")
    files = sorted(path for path in target.iterdir() if path.suffix in {".whl", ".gz"})
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def unpack(sdist: Path, folder: Path) -> Path:
    """Unpack `sdist` into `folder`, and return the directory that it holds."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    [directory] = folder.iterdir()
    return directory


def expect_same(first: dict[str, str], second: dict[str, str], way: str) -> None:
    """End with a message unless both builds gave the same bytes."""
    if first != second:
        sys.exit(f"dist: {way} gave other files: {first} and {second}")


if __name__ == "__main__":
    main()
