"""What a run printed or ended with, beyond what a reply shows: saved whole, told in few words."""

import json
from dataclasses import dataclass
from typing import Final, Protocol

from toolfold.jsontypes import Json, JsonObject
from toolfold.sandbox.sandbox import GuestOutcome
from toolfold.workspace.shapes import shape_of_value

_KEYS_CHARS: Final = 300
_LIST_OF: Final = "list of "


@dataclass(frozen=True, slots=True, kw_only=True)
class OverflowText:
    """One text that is too long for a reply, and what is said of it."""

    text: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedOverflow:
    """What of a run was too long; None for what was not."""

    output: OverflowText | None = None
    value: OverflowText | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what is said of it all."""
        return tuple(kept.words for kept in (self.output, self.value) if kept)


class ArtifactSaver(Protocol):
    """Saves a file of a run."""

    async def save(self, name: str, content: bytes) -> str:
        """Return its path, or raise an `OSError`."""
        ...


def render(value: Json) -> str:
    """Return a value as a model reads it best: text as it is, other values as compact JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


async def save_overflow(
    outcome: GuestOutcome, artifacts: ArtifactSaver, *, max_chars: int
) -> SavedOverflow:
    """Save what is too long to be shown, if all of it together is."""
    output, value = outcome.output, render(outcome.value)
    most = max_chars // 2 if outcome.failure else max_chars
    if len(output) + len(value) <= most:
        return SavedOverflow()
    saved: dict[str, OverflowText] = {}
    if len(output) > most // 4:
        saved["output"] = await _keep(artifacts, "printed", output, output)
    if len(value) > most // 4:
        saved["value"] = await _keep(artifacts, "value", value, outcome.value)
    return SavedOverflow(**saved)


async def _keep(artifacts: ArtifactSaver, what: str, text: str, value: Json) -> OverflowText:
    suffix = "txt" if isinstance(value, str) else "json"
    shape = shape_of_value(value)
    subject = "What was printed" if what == "printed" else "The value"
    told = f"{subject} has {len(text):,} characters: {describe(shape)}."
    try:
        path = await artifacts.save(f"-{what}.{suffix}", text.encode("utf-8", "replace"))
    except OSError as error:
        return OverflowText(text=text, words=f"{told} It could not be saved: {error.strerror}.")
    return OverflowText(
        text=text, words=f"{told} Saved whole: {path}\nRead it: {reading(path, shape)}"
    )


def describe(shape: JsonObject) -> str:
    """Say what a shape is: type, length, keys, a sample."""
    kind, length = str(shape["type"]), shape.get("length")
    unit = {"text": "lines"}.get(kind, "items" if kind == "list" else "keys")
    words = kind if length is None else f"{kind} of {length:,} {unit}"
    if keys := shape.get("keys"):
        listed = json.dumps(keys, ensure_ascii=False)
        words += f", keys {listed[:_KEYS_CHARS]}{'…' if len(listed) > _KEYS_CHARS else ''}"
    if "sample" in shape and kind != "text":
        words += f", the first {json.dumps(shape['sample'], ensure_ascii=False)}"
    return words


def reading(path: str, shape: JsonObject) -> str:
    """Return the line of code that reads on."""
    if shape["type"] == "text":
        return f'open("{path}").read()[:4000]'
    keys = shape.get("keys")
    if shape["type"] == "list":
        return f'import workspace; workspace.records("{path}", 0, 20)'
    parts = keys.items() if isinstance(keys, dict) else ()
    for key, told in parts:
        if isinstance(told, str) and told.startswith(_LIST_OF):
            return f'import workspace; workspace.records("{path}", 0, 20, at="{key}")'
    return f'import json; json.load(open("{path}"))'
