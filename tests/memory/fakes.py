"""An embedder that is quick and honest: texts that share words are near each other."""

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from toolfold.embedding import UNRELATED, Vectors
from toolfold.errors import StoreError


class FakeEmbedder:
    def __init__(self, name: str = "fake", dimensions: int = 256) -> None:
        self.name = name
        self.dimensions = 1 + dimensions
        self.failure: StoreError | None = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        if self.failure is not None:
            raise self.failure
        rows = np.array([self._sum(text) for text in texts], np.float32)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows *= np.sqrt(1 - UNRELATED) / np.where(lengths > 0, lengths, 1)
        # What all texts have in common, as with the built-in model.
        rows[:, 0] = np.where(lengths[:, 0] > 0, np.sqrt(UNRELATED), 0)
        return rows

    def _sum(self, text: str) -> np.ndarray:
        row = np.zeros(self.dimensions)
        for word in re.findall(r"\w+", text.lower()):
            digest = hashlib.sha256(f"{self.name} {word}".encode()).digest()
            row[1 + int.from_bytes(digest[:4], "big") % (self.dimensions - 1)] += 1
        return row
