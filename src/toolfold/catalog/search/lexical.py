"""Score tools by the words they share with a query: BM25 over weighted fields, kept on disk."""

import json
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TypeAlias, overload

from toolfold.catalog.names import words
from toolfold.catalog.tool import ListedTool, Tool
from toolfold.jsontypes import Json

Postings: TypeAlias = tuple[list[int], list[int]]


class StoredTools(Sequence[Tool]):
    """The tools that `tool_to_text` wrote, each read when it is asked for."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._read: dict[int, Tool] = {}

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, place: int) -> Tool: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Tool]: ...
    def __getitem__(self, place: int | slice) -> Tool | Sequence[Tool]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        place = range(len(self._texts))[place]
        if place not in self._read:
            self._read[place] = _tool_from_text(self._texts[place])
        return self._read[place]


class StoredTerms(Mapping[str, Postings]):
    """The postings of terms, each read when it is asked for."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __getitem__(self, term: str) -> Postings:
        numbers, scores = self._texts[term].split(";")
        return [*map(int, numbers.split())], [*map(int, scores.split())]


def postings_to_text(postings: Postings) -> str:
    """Write the postings of a term for `StoredTerms`."""
    return ";".join(" ".join(map(str, column)) for column in postings)


def tool_to_text(tool: Tool) -> str:
    """Write a tool for `StoredTools`."""
    listed = {field.name: getattr(tool.listed, field.name) for field in fields(ListedTool)}
    stored = {"server": tool.server, "module": tool.module, "function": tool.function}
    return json.dumps({**stored, "listed": listed}, separators=(",", ":"))


def _tool_from_text(text: str) -> Tool:
    stored = json.loads(text)
    return Tool(**{**stored, "listed": ListedTool(**stored["listed"])})


# BM25: how soon repeating a word stops to count, and how much long texts are held back.
_SATURATION = 0.9
_LENGTH_PENALTY = 0.5

_NAME_WEIGHT = 4.0
_SERVER_WEIGHT = 2.0
_DESCRIPTION_WEIGHT = 1.0
_PARAMETER_WEIGHT = 0.6
_NOTE_WEIGHT = 0.2

# Scores are whole numbers, so that they are the same after a trip through JSON.
_UNITS = 1_000
_MAX_READ_CHARS = 4_000
_MAX_READ_VALUES = 50

_STOP_WORDS = frozenset(
    words("""
    a about all am an and any are as at be been but by can could did do does for from had has have
    he help her him his how i if in into is it its just let like may me mcp might my need no not of
    on or our please she should so some than that the their them then there these they this those
    to us using want was we were what when where which who whom why will with would you your
    """)
)

# Each line is one word to us. Verbs that nearly every server uses for the same thing, and short
# forms: a tool may say `fetch` or `repo` where the query says `get` or `repository`.
_SYNONYMS = """
    find search look lookup locate discover
    get fetch retrieve obtain read view show display give provide
    create add make generate new open build insert compose
    delete remove erase
    update edit modify change
    send post
    write save store
    convert transform
    recommend suggest recommendation suggestion
    buy purchase
    image picture photo
    folder directory dir
    document doc
    repository repo
    database db
    information info
    configuration config
    mail email
    movie film
    travel trip journey
"""

_WORD = re.compile(r"[A-Za-z0-9]+")
# Letters that are not Latin. From U+2E80 on, scripts mostly do not part words by spaces.
_OTHER_SCRIPT = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]+")
_UNSPACED = "\u2e80"


@dataclass(frozen=True, slots=True, kw_only=True)
class WordMatch:
    """How well each tool matches, of those that do at all, and the words that none contains."""

    scores: dict[int, int]
    unmatched: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordIndex:
    """The words and the names of a list of tools, by their numbers in it."""

    names: Mapping[str, list[int]]
    # For each term the numbers of the tools, and what the term adds to the score of each.
    terms: Mapping[str, Postings]

    def match(self, query: str, *, among: Container[int] | None = None) -> WordMatch:
        """Score the tools, all or only those `among` the numbers given.

        A word of `query` that occurs in none of them, in any form or synonym, is unmatched. A
        query that has no telling word is one word that nothing matches.
        """
        scores: dict[int, int] = defaultdict(int)
        unmatched = []
        for word, terms in _query_words(query).items():
            is_found = False
            for term in terms:
                for number, score in zip(*self.terms.get(term, ((), ())), strict=True):
                    if among is None or number in among:
                        scores[number] += score
                        is_found = True
            if not is_found:
                unmatched.append(word)
        return WordMatch(scores=dict(scores), unmatched=tuple(unmatched))

    def named(self, query: str) -> list[int]:
        """Return the tools that `query` names and does nothing else, in any spelling."""
        return self.names.get(_squeezed(query), [])


def index_words(tools: Iterable[Tool]) -> WordIndex:
    """Read the words of `tools`: names, servers, descriptions, parameters and their values."""
    names: dict[str, list[int]] = defaultdict(list)
    weighted = []
    for number, tool in enumerate(tools):
        spellings = (tool.function, tool.path, f"{tool.server}.{tool.listed.name}")
        for name in dict.fromkeys(_squeezed(spelling) for spelling in spellings):
            names[name].append(number)
        weighted.append(_weighted_terms(tool))
    return WordIndex(names=dict(names), terms=_scored(weighted))


def server_label(tool: Tool) -> str:
    """Return the server's name where it says more than the tool's own, else nothing."""
    return "" if set(words(tool.server)) <= set(words(tool.listed.name)) else tool.server


def notes_of(schema: Json) -> Iterator[str]:
    """Give the description of a parameter and the values it may have."""
    if isinstance(schema, dict):
        values = schema.get("enum")
        texts = [schema.get("description"), *(values if isinstance(values, list) else [])]
        yield from (text for text in texts[:_MAX_READ_VALUES] if isinstance(text, str))


def _scored(weighted: list[dict[str, float]]) -> dict[str, Postings]:
    lengths = [sum(terms.values()) for terms in weighted]
    mean = sum(lengths) / len(lengths) if lengths else 1.0
    frequency = Counter(term for terms in weighted for term in terms)
    scored: dict[str, Postings] = {term: ([], []) for term in frequency}
    for number, terms in enumerate(weighted):
        length = 1 - _LENGTH_PENALTY + _LENGTH_PENALTY * lengths[number] / mean
        for term, weight in terms.items():
            rarity = math.log(1 + len(weighted) / frequency[term])
            saturated = weight * (_SATURATION + 1) / (weight + _SATURATION * length)
            scored[term][0].append(number)
            scored[term][1].append(round(_UNITS * rarity * saturated))
    return scored


def _weighted_terms(tool: Tool) -> dict[str, float]:
    weighted: dict[str, float] = defaultdict(float)
    for text, weight in _fields(tool):
        for _, term in _terms(text[:_MAX_READ_CHARS]):
            weighted[term] += weight
    return weighted


def _fields(tool: Tool) -> Iterator[tuple[str, float]]:
    yield tool.listed.name, _NAME_WEIGHT
    yield server_label(tool), _SERVER_WEIGHT
    yield tool.listed.description, _DESCRIPTION_WEIGHT
    from toolfold.catalog.binding import parameters_of  # who only searches does without

    for parameter in parameters_of(tool).listed:
        yield parameter.name, _PARAMETER_WEIGHT
        for text in notes_of(parameter.schema):
            yield text, _NOTE_WEIGHT


def _query_words(query: str) -> dict[str, set[str]]:
    """Return each telling word of `query` with its terms; different forms of one are one word."""
    found: dict[str, set[str]] = {}
    seen: set[str] = set()
    for word, term in _terms(query[:_MAX_READ_CHARS]):
        if term not in seen:
            seen.add(term)
            found.setdefault(word, set()).add(term)
    return found or {query.strip(): set()}


def _terms(text: str) -> Iterator[tuple[str, str]]:
    """Give each telling word of `text` with the terms that stand for it in all its forms.

    A word of mixed case is its parts and the whole: `YouTube` meets `tube` and `youtube`. A run of
    letters that are not parted into words gives a term for each two neighbours.
    """
    if not text.isascii():
        for run in _OTHER_SCRIPT.findall(text.lower()):
            if run < _UNSPACED or len(run) == 1:
                yield run, run
            else:
                yield from ((run, run[at : at + 2]) for at in range(len(run) - 1))
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(char for char in decomposed if not unicodedata.combining(char))
    for word in _WORD.findall(text):
        lowered = word.lower()
        parts = [lowered] if word[1:].islower() or len(word) == 1 else words(word)
        for part in parts if len(parts) == 1 else [*parts, lowered]:
            if part not in _STOP_WORDS:
                yield lowered, _term(part)


def _squeezed(name: str) -> str:
    """Write a name so that case, separators and the `mcp__` prefix of some clients do not count."""
    found = words(name)
    return "".join(found[1:] if found[:1] == ["mcp"] else found)


@lru_cache(maxsize=20_000)
def _term(word: str) -> str:
    stem = _stem(word)
    return _CANONICAL.get(stem, stem)


def _stem(word: str) -> str:
    """Cut the common endings, so that `issues` meets `issue` and `creating` meets `create`."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 2 and any(vowel in stem for vowel in "aeiouy"):
            word = stem[:-1] if stem[-1] == stem[-2] and stem[-1] not in "lsz" else stem
            break
    return word.removesuffix("e") if len(word) > 3 else word


_CANONICAL = {
    _stem(word): _stem(line.split()[0])
    for line in _SYNONYMS.strip().splitlines()
    for word in line.split()
}


_MAX_CHARS = 2_000
_MAX_STEPS = 6
_MIN_STEP_WORDS = 3

_KINDS = {
    "csv": "CSV file",
    "doc": "Word document",
    "docx": "Word document",
    "gif": "image file",
    "html": "HTML file",
    "jpeg": "image file",
    "jpg": "image file",
    "json": "JSON file",
    "md": "Markdown file",
    "mp3": "audio file",
    "mp4": "video file",
    "pdf": "PDF file",
    "png": "image file",
    "ppt": "PowerPoint presentation",
    "pptx": "PowerPoint presentation",
    "py": "Python file",
    "svg": "image file",
    "txt": "text file",
    "wav": "audio file",
    "xls": "Excel spreadsheet",
    "xlsx": "Excel spreadsheet",
    "xml": "XML file",
    "yaml": "YAML file",
    "yml": "YAML file",
    "zip": "ZIP archive",
}

_ADDRESS = re.compile(
    r"""https?://(?:www\.)?(?P<host>[\w-]+(?:\.[\w-]+)*)[^\s,;)\]>"'`]*(?<![.!?])"""
)
_PATH = re.compile(
    r"(?<![\w:/\\.-])(?:"
    r"(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.-]+){2,}(?<!\.)[/\\]?"  # two segments or more
    rf"|(?:~|\.{{1,2}})?[/\\]?[\w-][\w.-]*\.(?:{'|'.join(_KINDS)})\b"  # or an ending we know
    r")"
)
# Encoded data, not words: no word of any use is that long.
_BLOB = re.compile(r"\S{60,}")
_STEP_END = re.compile(r"[.;:!?](?=\s|$)|\n|,(?=\s)|\b(?:and|then)\b", re.IGNORECASE)


def intent(query: str) -> str:
    """Return `query` with its data taken out, so that it says what is wanted.

    `save it to /home/ada/talk.pptx` becomes `save it to PowerPoint presentation`: how somebody
    named a file says nothing about the tool, what the file is does. Of an address the host stays.
    A query that is nothing but data stays as it is.
    """
    text = _ADDRESS.sub(_kind_of_address, query[:_MAX_CHARS])
    text = _BLOB.sub(" ", _PATH.sub(_kind_of_path, text))
    return text.strip() or query[:_MAX_CHARS].strip()


def steps(text: str) -> list[str]:
    """Return the parts of a task, at most six; none if it is all one part.

    They end with a sentence, at a comma, `and` or `then`. What has under three words is no step.
    """
    parts = [part.strip() for part in _STEP_END.split(text)]
    found = [part for part in parts if len(part.split()) >= _MIN_STEP_WORDS]
    return found[:_MAX_STEPS] if len(found) > 1 else []


def _kind_of_address(found: re.Match[str]) -> str:
    labels = found["host"].split(".")
    return f"{' '.join(labels[:-1] or labels)} web page"


def _kind_of_path(found: re.Match[str]) -> str:
    name = re.split(r"[/\\]", found[0])[-1]
    return _KINDS.get(name.rpartition(".")[2].lower(), "file") if "." in name else "folder"
