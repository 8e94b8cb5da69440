"""Count tokens with a real vocabulary: o200k_base, from a file of our own."""

import gzip
import hashlib
import zlib
from binascii import a2b_base64
from functools import cache
from pathlib import Path

import tiktoken

from toolfold.errors import StoreError

VOCABULARY = Path(__file__).parent / "assets" / "o200k_base.tiktoken.gz"
# The digest that OpenAI publishes for the uncompressed file.
VOCABULARY_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"

# Pattern and special tokens as in `tiktoken_ext.openai_public.o200k_base`, which would download.
_PATTERN = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
_SPECIAL_TOKENS = {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}

# A million spaces in one piece overflow the stack of tiktoken's regex engine, which panics.
_SLICE_CHARS = 100_000


def count_tokens(text: str) -> int:
    """Return how many tokens a model reads for `text`; special tokens count as plain text.

    Exact up to 100,000 characters; each further slice of that length may add a token or two.

    Raises:
        StoreError: The vocabulary is missing or damaged.
    """
    encoding = _encoding()
    slices = (text[at : at + _SLICE_CHARS] for at in range(0, len(text), _SLICE_CHARS))
    return sum(len(encoding.encode(piece, disallowed_special=())) for piece in slices)


def load_encoding(path: Path) -> tiktoken.Encoding:
    """Build o200k_base from the compressed vocabulary at `path`.

    Raises:
        StoreError: The file is missing, or is not the published vocabulary.
    """
    ranks = (line.split() for line in _read_vocabulary(path).splitlines())
    return tiktoken.Encoding(
        "o200k_base",
        pat_str=_PATTERN,
        mergeable_ranks={a2b_base64(token): int(rank) for token, rank in ranks},
        special_tokens=_SPECIAL_TOKENS,
    )


def _read_vocabulary(path: Path) -> bytes:
    remedy = "Run `python scripts/fetch_vocabulary.py` (or `make setup`), or reinstall toolfold."
    try:
        vocabulary = gzip.decompress(path.read_bytes())
    except FileNotFoundError as error:
        raise StoreError(f"The token vocabulary {path} is missing. {remedy}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise StoreError(f"Cannot read the token vocabulary {path}: {error}. {remedy}") from error
    if hashlib.sha256(vocabulary).hexdigest() != VOCABULARY_SHA256:
        raise StoreError(f"The token vocabulary {path} is not the published one. {remedy}")
    return vocabulary


@cache
def _encoding() -> tiktoken.Encoding:
    return load_encoding(VOCABULARY)
