"""Find names of people and places with a model that the user brings, in ONNX.

The directory holds what such models are published with: `model.onnx`, `tokenizer.json` and
`config.json` with `id2label`. Labels are `B-PER`, `I-PER` and so on.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from toolfold.errors import ConfigError
from toolfold.privacy.spans import Span

# ONNX Runtime and the tokenizer, which is an extra, are slow to import, and few want them.
if TYPE_CHECKING:
    import onnxruntime  # type: ignore[import-untyped]
    import tokenizers

_KINDS: Final[Mapping[str, str]] = {
    "PER": "NAME",
    "PERSON": "NAME",
    "LOC": "LOCATION",
    "GPE": "LOCATION",
    "ADDRESS": "ADDRESS",
}
# The tokenizer refuses these; another character keeps all places as they are.
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_WINDOW_CHARS: Final = 1_000
_OVERLAP_CHARS: Final = 100
_MAX_TOKENS: Final = 510


class _Model(NamedTuple):
    tokenizer: "tokenizers.Tokenizer"
    session: "onnxruntime.InferenceSession"
    labels: dict[int, str]


class NerDetector:
    """People and places, by a model for token classification; loaded at the first text."""

    kinds = tuple(dict.fromkeys(_KINDS.values()))

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._loading = Lock()
        self._model: _Model | None = None

    def find(self, text: str) -> list[Span]:
        """Return the names that the model marks; a long text is read in windows that overlap.

        Raises:
            ConfigError: The model cannot be loaded.
        """
        model = self._loaded()
        found: dict[Span, None] = {}
        for begin in range(0, max(1, len(text)), _WINDOW_CHARS - _OVERLAP_CHARS):
            window = text[begin : begin + _WINDOW_CHARS]
            for kind, start, end in _marked(model, window):
                found[Span(kind, begin + start, begin + end)] = None
        return list(found)

    def _loaded(self) -> _Model:
        with self._loading:
            if self._model is None:
                self._model = _load(self._directory)
            return self._model


def _load(directory: Path) -> _Model:
    import onnxruntime

    try:
        import tokenizers
    except ImportError as error:
        raise ConfigError(
            "Models that find names need the package tokenizers. Install it with "
            "`pip install 'toolfold[ner]'`."
        ) from error
    try:
        settings = json.loads((directory / "config.json").read_text(encoding="utf-8"))
        labels = {int(number): str(label) for number, label in settings["id2label"].items()}
        tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(directory / "model.onnx"), options)
    except Exception as error:  # both libraries raise bare exceptions of their own
        raise ConfigError(
            f"The model in {directory} cannot be loaded: {error}. It must hold model.onnx, "
            "tokenizer.json and config.json with id2label."
        ) from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(_MAX_TOKENS)
    return _Model(tokenizer, session, labels)


def _marked(model: _Model, text: str) -> Iterator[Span]:
    """Yield one span for each run of marks of one kind."""
    import numpy as np

    encoded = model.tokenizer.encode(_SURROGATE.sub("\ufffd", text))
    given: dict[str, Any] = {
        "input_ids": encoded.ids,
        "attention_mask": encoded.attention_mask,
        "token_type_ids": encoded.type_ids,
    }
    wanted = {each.name for each in model.session.get_inputs()}
    feed = {name: np.array([ids], np.int64) for name, ids in given.items() if name in wanted}
    marks = model.session.run(None, feed)[0][0].argmax(axis=-1)
    open_span: Span | None = None
    for mark, (start, end) in zip(marks, encoded.offsets, strict=True):
        prefix, _, label = model.labels.get(int(mark), "O").rpartition("-")
        kind = _KINDS.get(label.upper())
        if open_span and kind == open_span.kind and prefix != "B":
            open_span = open_span._replace(end=end)
            continue
        if open_span:
            yield open_span
        open_span = Span(kind, start, end) if kind and end > start else None
    if open_span:
        yield open_span
