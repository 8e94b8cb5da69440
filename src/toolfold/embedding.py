"""Turn text into vectors: the Embedder protocol and the built-in model, gte-small adapted."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from toolfold.errors import StoreError
from toolfold.wordpiece import WordPieces

# numpy and ONNX Runtime cost 0.1 s to import, so only those who embed pay for them.
if TYPE_CHECKING:
    import numpy as np
    import onnxruntime  # type: ignore[import-untyped]
    from numpy.typing import NDArray

Vectors: TypeAlias = "NDArray[np.float32]"
Scores = TypeVar("Scores", float, "NDArray[np.float32]")

MODEL = Path(__file__).parent / "assets" / "gte-small-int8.onnx"
TOKENIZER = Path(__file__).parent / "assets" / "gte-small-tokenizer.json"
# What `scripts/build_embedder.py` makes, to the byte, from the published weights and our adapter.
MODEL_SHA256 = "a13451f831c2e7d6d9eed5f7cf978692c37d16e28ad2998fa8a7ec03bb139dd5"
TOKENIZER_SHA256 = "b2671b6b396976e3f5aef2c69ea482aa60a2a571933664ab36f352d655ecea29"

DIMENSIONS = 384
MAX_TOKENS = 256

# The cosine between texts that have nothing to do with each other: the model uses the upper part of
# the scale alone.
UNRELATED = 0.58

# A text is split into words before the first are taken; ordinary prose has 4 characters a token.
_MAX_CHARS = 16_384
_SCALE_BYTES = 4


class Embedder(Protocol):
    """Texts in, unit vectors out. Any thread may call it."""

    @property
    def name(self) -> str:
        """Which model and precision: vectors of different names must not be compared."""

    @property
    def dimensions(self) -> int:
        """How long each vector is."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one normalised row for each text, in the same order.

        Raises:
            StoreError: The model cannot be loaded.
        """


class BuiltinEmbedder:
    """The built-in model, loaded at the first text; reads the first 256 tokens of each.

    Texts pass through the model one by one. Dynamic quantization takes its range from the whole
    batch, so a vector would depend on its neighbours (cosine 0.97 to itself), for 10 % more speed.
    """

    name = f"gte-small-toolfold-int8@{MODEL_SHA256[:8]}"
    dimensions = DIMENSIONS

    def __init__(self, *, model: Path = MODEL, tokenizer: Path = TOKENIZER) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._loading = Lock()
        self._loaded: tuple[WordPieces, onnxruntime.InferenceSession] | None = None

    def is_available(self) -> bool:
        """Tell whether the files of the model are in place."""
        return self._model.is_file() and self._tokenizer.is_file()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one normalised row for each text, in the same order.

        Raises:
            StoreError: A file of the model is missing or is not the one we built.
        """
        import numpy as np

        vectors = np.empty((len(texts), DIMENSIONS), np.float32)
        if texts:
            pieces, session = self._load()
            for row, text in zip(vectors, texts, strict=True):
                ids = pieces.encode(text[:_MAX_CHARS], MAX_TOKENS)
                row[:] = session.run(None, {"input_ids": np.array([ids], np.int64)})[0][0]
        return vectors

    def _load(self) -> "tuple[WordPieces, onnxruntime.InferenceSession]":
        with self._loading:
            if self._loaded is None:
                _verify(self._tokenizer, TOKENIZER_SHA256)
                _verify(self._model, MODEL_SHA256)
                self._loaded = WordPieces.read(self._tokenizer), _open_session(self._model)
            return self._loaded


def nearness(cosines: Scores) -> Scores:
    """Return how near texts are by the cosines of their vectors: 1 if equal, 0 if unrelated."""
    return (cosines - UNRELATED) / (1 - UNRELATED)


def quantize(vectors: Vectors) -> list[bytes]:
    """Return each row as a blob: its scale (little-endian float32), then an int8 per dimension.

    The cosine between a row of 384 numbers and its blob is at least 0.997, whatever the numbers.
    """
    import numpy as np

    scales = np.abs(vectors).max(axis=1, keepdims=True, initial=0) / np.float32(127)
    levels = np.rint(vectors / np.where(scales > 0, scales, 1)).astype(np.int8)
    heads = scales.astype("<f4")
    return [head.tobytes() + row.tobytes() for head, row in zip(heads, levels, strict=True)]


def dequantize(blobs: Sequence[bytes], *, dimensions: int = DIMENSIONS) -> Vectors:
    """Return the rows that `quantize` wrote, in the same order.

    Raises:
        StoreError: A blob does not hold that many dimensions.
    """
    import numpy as np

    expected = _SCALE_BYTES + dimensions
    if odd := {len(blob) for blob in blobs} - {expected}:
        raise StoreError(
            f"A stored vector has {min(odd)} bytes where {dimensions} dimensions take {expected}. "
            "Another embedder wrote it: embed its text again."
        )
    layout = np.dtype([("scale", "<f4"), ("levels", "i1", (dimensions,))])
    rows = np.frombuffer(b"".join(blobs), layout)
    vectors: Vectors = rows["levels"] * rows["scale"][:, np.newaxis]
    return vectors


def _verify(path: Path, sha256: str) -> None:
    remedy = "Run `python scripts/build_embedder.py` (or `make setup`), or reinstall toolfold."
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise StoreError(f"The embedding model's file {path} is missing. {remedy}") from error
    except OSError as error:
        raise StoreError(f"Cannot read the embedding model's {path}: {error}. {remedy}") from error
    if found != sha256:
        raise StoreError(f"The embedding model's file {path} is not the one we built. {remedy}")


def _open_session(path: Path) -> "onnxruntime.InferenceSession":
    # On import it would give this machine an id and keep a database in the home directory.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # A second thread takes a quarter off a query. More would mostly spin between texts.
    options.intra_op_num_threads = min(2, os.cpu_count() or 1)
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
