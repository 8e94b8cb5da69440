"""Score tools by meaning: their vectors beside those of a query, fused with its words."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from toolfold.catalog.binding import parameters_of
from toolfold.catalog.names import words
from toolfold.catalog.search.lexical import notes_of, server_label, steps
from toolfold.catalog.tool import Tool

Vectors: TypeAlias = NDArray[np.float32]
Embed: TypeAlias = Callable[[Sequence[str]], Vectors]

# How much a tool's whole text, its bare name and its inputs count; in the order of their texts.
_VIEW_WEIGHTS = (0.7, 0.15, 0.15)
# How much the best of a task's steps counts against the task as a whole.
_STEP_WEIGHT = 0.5
# How much words count against meaning, both in standard deviations.
_WORDS_WEIGHT = 0.4
# How much nearness to the first hits counts: at most twenty, and a tenth of all tools.
_FEEDBACK_WEIGHT = 0.35
_FEEDBACK_TOOLS = 20
_FEEDBACK_SHARE = 10

_MAX_DESCRIPTION_CHARS = 600
_MAX_INPUT_CHARS = 600
# Scores that differ by less are equal, and the order of the tools decides.
_DECIMALS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingText:
    """A text to embed, and the key that its vector is kept under: a hash of the text."""

    text: str
    key: str


class VectorTable:
    """Vectors by key. All are of one embedder; whoever stores the table stores its name."""

    def __init__(self, vectors: Mapping[str, Vectors] | None = None) -> None:
        self._vectors = dict(vectors or {})

    def __len__(self) -> int:
        return len(self._vectors)

    def __contains__(self, key: object) -> bool:
        return key in self._vectors

    def __getitem__(self, key: str) -> Vectors:
        return self._vectors[key]

    def items(self) -> Iterable[tuple[str, Vectors]]:
        """Give the keys and vectors, to be stored."""
        return self._vectors.items()

    def missing(self, tools: Iterable[Tool]) -> list[EmbeddingText]:
        """Return what is still to be embedded for `tools`, each text once."""
        wanted = {text.key: text for tool in tools for text in embedding_texts(tool)}
        return [text for key, text in wanted.items() if key not in self._vectors]

    def extended(self, texts: Sequence[EmbeddingText], vectors: Vectors) -> "VectorTable":
        """Return a table that holds the vectors of `texts` too."""
        added = {text.key: row for text, row in zip(texts, vectors, strict=True)}
        return VectorTable({**self._vectors, **added})

    def reduced(self, tools: Iterable[Tool]) -> "VectorTable":
        """Return a table of what `tools` need, without the vectors of others."""
        keys = {text.key for tool in tools for text in embedding_texts(tool)}
        return VectorTable({key: row for key, row in self._vectors.items() if key in keys})


class ToolVectors:
    """What `tools` mean, by their numbers in that list.

    A tool whose texts are not all in the table counts as average, so its words decide.
    """

    def __init__(self, tools: Sequence[Tool], table: VectorTable) -> None:
        self.tools = tools
        keyed = [[text.key for text in embedding_texts(tool)] for tool in tools]
        self._known = np.array([all(key in table for key in keys) for keys in keyed], dtype=bool)
        width = next((len(row) for _, row in table.items()), 0)
        # Cosines are weighted sums of products, so one vector can stand for all views of a tool.
        self._rows = np.zeros((len(keyed), width), np.float32)
        for row, keys, is_known in zip(self._rows, keyed, self._known, strict=True):
            if is_known:
                for weight, key in zip(_VIEW_WEIGHTS, keys, strict=True):
                    row += np.float32(weight) * table[key]

    @property
    def is_complete(self) -> bool:
        """Tell whether every tool has its vector."""
        return bool(self._known.all())

    def ranked(
        self,
        intent: str,
        scores: Mapping[int, int],
        *,
        among: Collection[int] | None = None,
        embed: Embed,
    ) -> dict[int, float]:
        """Return what the tools are worth by number, all or those `among` the given, best first.

        `scores` is what their words are worth. Equals stay in the order of the tools. A tool that
        has neither vector nor score is left out.
        """
        words_worth = np.zeros(len(self.tools), np.float32)
        words_worth[list(scores)] = list(scores.values())
        numbers = np.arange(len(self.tools)) if among is None else np.array(sorted(among), int)
        # To pick all rows would copy them, which takes longer than all the rest.
        rows = self._rows if among is None else self._rows[numbers]
        known, words_worth = self._known[numbers], words_worth[numbers]
        if known.any():
            fused = _fused(rows, known, words_worth, embed([intent, *steps(intent)]))
        else:
            fused = words_worth
        order = np.argsort(-np.round(fused, _DECIMALS), kind="stable")
        order = order[known[order] | (words_worth[order] > 0)]
        return dict(zip(numbers[order].tolist(), fused[order].tolist(), strict=True))


def embedding_texts(tool: Tool) -> tuple[EmbeddingText, ...]:
    """Return the texts whose vectors stand for `tool`: all about it, its name, its inputs."""
    parameters = parameters_of(tool).listed
    name, server = _spaced(tool.listed.name), _spaced(server_label(tool))
    whole = f"{name}: {_on_one_line(tool.listed.description)[:_MAX_DESCRIPTION_CHARS]}"
    if server:
        whole += f" (server: {server})"
    if parameters:
        whole += f" Parameters: {', '.join(_spaced(each.name) for each in parameters)}"
    inputs = [f"{_spaced(each.name)}: {' '.join(notes_of(each.schema))}" for each in parameters]
    described = _on_one_line(f"{name}: {'. '.join(inputs)}"[: len(name) + _MAX_INPUT_CHARS])
    return tuple(_keyed(text) for text in (whole, f"{server} {name}".strip(), described))


def _keyed(text: str) -> EmbeddingText:
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return EmbeddingText(text=text, key=digest[:32])


def _spaced(name: str) -> str:
    return " ".join(words(name)) or name


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _fused(
    rows: Vectors, known: NDArray[np.bool_], words_worth: Vectors, queries: Vectors
) -> Vectors:
    """Return what each tool is worth by meaning and words, in standard deviations.

    What the first hits have in common tells more of the subject than the query alone, so nearness
    to them counts too. The hits of a task of several steps have no common subject.
    """
    by_words = _WORDS_WEIGHT * _standardised(words_worth, np.ones_like(known))
    likeness = _likeness(rows, queries)
    fused = by_words + _standardised(likeness, known)
    if len(queries) > 1:
        return fused
    order = np.argsort(-fused, kind="stable")
    most = max(1, min(_FEEDBACK_TOOLS, len(rows) // _FEEDBACK_SHARE))
    subject = rows[order[known[order]][:most]].mean(axis=0)
    return by_words + _standardised(likeness + _FEEDBACK_WEIGHT * (rows @ subject), known)


def _likeness(rows: Vectors, queries: Vectors) -> Vectors:
    """Return how near each row is to the query, the first, and to the best of its steps."""
    near: Vectors = rows @ queries.T
    if len(queries) > 1:
        best: Vectors = near[:, 1:].max(axis=1)
        return (1 - _STEP_WEIGHT) * near[:, 0] + _STEP_WEIGHT * best
    return near[:, 0]


def _standardised(values: Vectors, known: NDArray[np.bool_]) -> Vectors:
    """Return `values` less their mean, in standard deviations; what is not known is average."""
    sample = values[known]
    if not len(sample) or (spread := sample.std()) < 1e-9:
        return np.zeros_like(values)
    return np.where(known, (values - sample.mean()) / spread, np.float32(0))
