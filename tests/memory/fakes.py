"""An embedder that is quick and honest: texts that share words are near each other."""

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from toolfold.embedding import Vectors
from toolfold.errors import StoreError


class FakeEmbedder:
    def __init__(self, name: str = "fake", dimensions: int = 256) -> None:
        self.name = name
        self.dimensions = dimensions
        self.failure: StoreError | None = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        if self.failure is not None:
            raise self.failure
        rows = np.array([self._sum(text) for text in texts], np.float32)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(lengths > 0, lengths, 1)

    def _sum(self, text: str) -> np.ndarray:
        row = np.zeros(self.dimensions)
        for word in re.findall(r"\w+", text.lower()):
            digest = hashlib.sha256(f"{self.name} {word}".encode()).digest()
            row[int.from_bytes(digest[:4], "big") % self.dimensions] += 1
        return row
