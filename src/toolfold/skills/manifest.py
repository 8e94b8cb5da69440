"""SKILL.md: its front matter, of which we read two fields and keep the rest as it is.

The front matter of the Agent Skills standard is YAML. What people write there is read: plain and
quoted values, and blocks of lines after `|` and `>`. What is more than that in a field that we need
is refused; fields that we do not need may hold anything.
"""

import json
import re
from dataclasses import dataclass
from typing import Final

from toolfold.errors import BadInput

MAX_DESCRIPTION_CHARS: Final = 1024

_FENCE: Final = "---"
_FIELD: Final = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):(?:[ \t]+(.*))?")
_BLOCK: Final = re.compile(r"([|>])[+-]?")
_PLAIN: Final = re.compile(r"[A-Za-z0-9(][^:#\"'\n]*")
_WORDS_OF_YAML: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off"})


@dataclass(frozen=True, slots=True)
class Manifest:
    """One SKILL.md."""

    fields: tuple[tuple[str, tuple[str, ...]], ...]
    """The front matter: each field with its lines, in order."""
    body: str

    @property
    def name(self) -> str:
        """What it says the skill is called.

        Raises:
            BadInput: It does not say so, or not in a way that we read.
        """
        return self._value("name")

    @property
    def description(self) -> str:
        """What the skill does and when to use it.

        Raises:
            BadInput: It does not say so, not in a way that we read, or at too great length.
        """
        return check_description(self._value("description"))

    def described(self, description: str) -> "Manifest":
        """Return the same with another description."""
        line = (f"description: {_written(description)}",)
        changed = tuple((key, line if key == "description" else old) for key, old in self.fields)
        return Manifest(changed, self.body)

    def __str__(self) -> str:
        """Return the text of the file."""
        lines = [line for _, block in self.fields for line in block]
        return "\n".join([_FENCE, *lines, _FENCE, self.body])

    def _value(self, field: str) -> str:
        found = [lines for key, lines in self.fields if key == field]
        if len(found) != 1:
            raise BadInput(f"SKILL.md needs one line `{field}: ...` between two lines of ---")
        value = _read(found[0]).strip()
        if not value:
            raise BadInput(f"{field} in SKILL.md is empty")
        return value


def parse_manifest(text: str) -> Manifest:
    """Read the text of a SKILL.md.

    Raises:
        BadInput: It has no front matter.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), 0)
    if lines[0].rstrip() != _FENCE or not end:
        raise BadInput("SKILL.md does not start with front matter between two lines of ---")
    fields: list[tuple[str, list[str]]] = []
    for line in lines[1:end]:
        match = _FIELD.fullmatch(line.rstrip())
        if match:
            fields.append((match[1], [line]))
        elif fields:
            fields[-1][1].append(line)
        elif line.strip() and not line.lstrip().startswith("#"):
            raise BadInput(f"SKILL.md has a line that is no field: {line[:80]!r}")
    body = "\n".join(lines[end + 1 :])
    return Manifest(tuple((key, tuple(block)) for key, block in fields), body)


def new_manifest(folder: str, description: str, *, usage: str) -> Manifest:
    """Return the SKILL.md of a skill that has none; `usage` is the line that imports it."""
    body = f"\n{description}\n\nRun it with toolfold:\n\n```python\n{usage}\n```\n"
    fields = (
        ("name", (f"name: {folder}",)),
        ("description", (f"description: {_written(description)}",)),
    )
    return Manifest(fields, body)


def check_description(text: str) -> str:
    """Return a description in one line.

    Raises:
        BadInput: There is none, or it is too long.
    """
    line = " ".join(text.split())
    if not line:
        raise BadInput("a skill needs a description: what it does, and when to use it")
    if not line.isprintable():
        raise BadInput("the description holds characters that cannot be shown")
    if len(line) > MAX_DESCRIPTION_CHARS:
        raise BadInput(
            f"the description has {len(line):,} characters; at most "
            f"{MAX_DESCRIPTION_CHARS:,} are taken"
        )
    return line


def _written(value: str) -> str:
    is_plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS_OF_YAML
    return value if is_plain and value[:1].isalpha() else json.dumps(value, ensure_ascii=False)


def _read(lines: tuple[str, ...]) -> str:
    """Return the value of a field."""
    match = _FIELD.fullmatch(lines[0].rstrip())
    first = (match[2] or "").strip() if match else ""
    more = [line.strip() for line in lines[1:]]
    if block := _BLOCK.fullmatch(first):
        return ("\n" if block[1] == "|" else " ").join(more)
    text = " ".join([first, *more]).strip()
    if text[:1] == '"':
        return _double_quoted(text)
    if text[:1] == "'":
        return _single_quoted(text)
    if text[:1] in tuple("[]{}&*!%@`|>#") or ": " in text:
        raise BadInput(f"a value in SKILL.md must be quoted: {text[:80]!r}")
    return text.partition(" #")[0]


def _double_quoted(text: str) -> str:
    try:
        value, end = json.JSONDecoder().raw_decode(text)
    except ValueError as error:
        raise BadInput(f"a quoted value in SKILL.md cannot be read: {text[:80]!r}") from error
    _check_rest(text[end:])
    return str(value)


def _single_quoted(text: str) -> str:
    match = re.match(r"'((?:[^']|'')*)'", text)
    if match is None:
        raise BadInput(f"a quoted value in SKILL.md does not end: {text[:80]!r}")
    _check_rest(text[match.end() :])
    return match[1].replace("''", "'")


def _check_rest(rest: str) -> None:
    if rest.strip() and not rest.lstrip().startswith("#"):
        raise BadInput(f"something follows a quoted value in SKILL.md: {rest[:80]!r}")
