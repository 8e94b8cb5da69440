"""What conversations are about, and when one turns to something else. Pure."""

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from toolfold.embedding import nearness
from toolfold.entrypoints.hooks.notes import AnyNote

_MAX_CONVERSATIONS: Final = 200
_MAX_SUBJECTS: Final = 6
_TWICE_S: Final = 10.0

# A prompt of few words ("now run the tests") goes on with what there is.
_FEWEST_WORDS: Final = 4
_NEAR: Final = 0.3
_SHARED: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a prompt is about: its telling words, and its meaning."""

    words: frozenset[str]
    vector: tuple[float, ...]

    def is_near(self, other: "Subject") -> bool:
        """Whether two prompts are about the same."""
        cosine = sum(a * b for a, b in zip(self.vector, other.vector, strict=True))
        shared = len(self.words & other.words) / max(1, min(len(self.words), len(other.words)))
        return nearness(cosine) >= _NEAR or shared >= _SHARED


@dataclass(slots=True, eq=False)
class Conversation:
    """One that goes on."""

    shown: set[str] = field(default_factory=set)
    """The hashes of notes that the model has seen in it."""

    began: tuple[str, float] = ("", 0.0)
    _subjects: deque[Subject] = field(default_factory=lambda: deque(maxlen=_MAX_SUBJECTS))

    def saw(self, notes: Iterable[AnyNote]) -> None:
        """Take down what the model was shown."""
        self.shown.update(note.hash for note in notes)

    def turns(self, subject: Subject) -> bool:
        """Take in what is said; tell whether it is about something new."""
        if len(subject.words) < _FEWEST_WORDS or not subject.vector:
            return False
        has_turned = not any(subject.is_near(each) for each in self._subjects)
        self._subjects.append(subject)
        return has_turned


class Conversations:
    """Those that go on, by their ids; the ones that were quiet for longest are forgotten."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Conversation] = OrderedDict()

    def begin(self, session: str, source: str, *, now: float) -> Conversation | None:
        """Return a conversation that begins, or begins anew; None if that was said just now."""
        known = self.find(session)
        said, at = known.began
        if session and said == source and now - at < _TWICE_S:
            return None
        fresh = self._known[session] = Conversation(began=(source, now))
        return fresh

    def find(self, session: str) -> Conversation:
        """Return the conversation of that id."""
        known = self._known.pop(session, None) or Conversation()
        self._known[session] = known
        while len(self._known) > _MAX_CONVERSATIONS:
            self._known.popitem(last=False)
        return known
