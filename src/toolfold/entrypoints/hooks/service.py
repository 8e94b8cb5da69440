"""Answer hooks: recall notes when a conversation begins or turns, record it when it ends."""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import anyio
import anyio.to_thread

from toolfold.config.config import Config
from toolfold.config.settings import HookSettings
from toolfold.embedding import Embedder
from toolfold.entrypoints.hooks.conversation_record import record
from toolfold.entrypoints.hooks.cost import AvoidedCall, book, tokens_as_tool_calls
from toolfold.entrypoints.hooks.git import Git, GitContext, GitLocation
from toolfold.entrypoints.hooks.notes import NoteCandidates, choose, fitted, line
from toolfold.entrypoints.hooks.topics import Conversations, Subject
from toolfold.errors import BadInput, Denied, NeedsApproval, Unrecorded, count
from toolfold.execution.verb_door import VerbDoor, VerbDoors
from toolfold.journal.journal import Journal
from toolfold.journal.runs import Origin
from toolfold.jsontypes import JsonObject
from toolfold.memory.models import (
    CompactMemory,
    CompactSearchResult,
    ExplainedMemory,
    as_it_is,
    as_json,
)
from toolfold.memory.ranking.rank import telling_words
from toolfold.memory.store import in_background
from toolfold.relay.hooks.secrets import beginning_without_secrets
from toolfold.relay.hooks.text import asks_for_memory, fenced
from toolfold.tokens import count_tokens

IMPORTANT: Final = "important"
"""The tag of notes that every conversation begins with."""

_FROM_GIT: Final = 3
_IMPORTANT: Final = 5
_GIT_SCORE: Final = 0.35
_FROM_PROMPT: Final = 3
_LOOKED_AT: Final = 10
_PROMPT_SCORE: Final = 0.6
_PROMPT_SHARE: Final = 3
_MAX_QUERY: Final = 2_000
_HOW: Final = 'In execute_code, toolfold.memory.get("HASH") returns a whole note.'

HookAnswer = dict[str, Any]
FoundNotes = Sequence[CompactMemory | ExplainedMemory]
ReviewProgram = Callable[[Config, dict[str, str]], Awaitable[HookAnswer]]


class Hooks:
    """Answers the hooks of any number of conversations, which it tells apart and follows."""

    def __init__(
        self,
        doors: VerbDoors,
        embedder: Embedder | None = None,
        *,
        journal: Journal | None = None,
        review: "ReviewProgram | None" = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Without an embedder, no topic ever turns; without a journal, no ledger has it.

        Without `review`, nothing is said of programs.
        """
        self._review = review
        self._doors = doors
        self._journal = journal
        self._embedder = embedder
        self._clock = clock
        self._conversations = Conversations()
        self._git = Git()

    async def answer(self, config: Config, request: JsonObject) -> HookAnswer:
        """Answer one hook; empty if it is switched off, or there is nothing to say.

        `context` is for the model, `message` for the user; `remarks` tell what did not work and did
        not matter, `notes`, `tokens` and `saved` what it came to. What a rule forbids is a remark,
        too: nobody else is to be asked for it.

        Raises:
            BadInput: There is no such hook.
            StoreError: Memory does not answer.
        """
        try:
            return await self._answer(config, request)
        except (Denied, NeedsApproval, Unrecorded) as error:
            return {"remarks": [str(error)]}

    async def _answer(self, config: Config, request: JsonObject) -> HookAnswer:
        hook, payload = request.get("hook"), _payload(request)
        wanted = config.settings.hooks
        match hook:
            case "session-start":
                return await self._begin(config, payload) if wanted.session_start else {}
            case "prompt":
                return await self._go_on(config, payload) if wanted.prompt else {}
            case "pre-tool-use":
                return await self._review(config, payload) if self._review else {}
            case "pre-compact":
                return await self._record(config, payload, "compaction", on=wanted.pre_compact)
            case "session-end":
                return await self._record(config, payload, "session end", on=wanted.session_end)
        raise BadInput(f"There is no hook {hook!r}.")

    async def _begin(self, config: Config, payload: dict[str, str]) -> HookAnswer:
        source = payload.get("source", "startup")
        known = self._conversations.begin(payload.get("session_id", ""), source, now=self._clock())
        if known is None:
            return {}  # two hooks are installed for the same thing
        search = _Search(self._enter(config, payload))
        git, listed = await self._look_around(config, search)
        near = await search.find(git.query, limit=_FROM_GIT, min_score=_GIT_SCORE)
        sources = [NoteCandidates(near, share=3), *listed]
        chosen = choose(sources, most=config.settings.hooks.notes)
        answer = await _shown(config, chosen, search, about=git.about)
        shown = chosen[: answer.get("notes", 0)]
        known.saw(shown)
        self._book(config, payload, "session-start", search.that_brought(shown), answer)
        return answer | ({"remarks": list(git.remarks)} if git.remarks else {})

    async def _look_around(
        self, config: Config, search: "_Search"
    ) -> tuple[GitContext, list[NoteCandidates]]:
        found: list[GitContext] = []
        is_found = anyio.Event()

        async def ask_git() -> None:
            found.append(await self._git.read(_git_location(config)))
            is_found.set()

        async with in_background(ask_git):
            important = NoteCandidates(await search.tagged(IMPORTANT, limit=_IMPORTANT), share=3)
            recent = NoteCandidates(await search.newest(limit=config.settings.hooks.notes), share=2)
            await is_found.wait()
        return found[0], [important, recent]

    async def _go_on(self, config: Config, payload: dict[str, str]) -> HookAnswer:
        prompt = beginning_without_secrets(payload.get("prompt", ""), _MAX_QUERY)
        prompt = prompt[:_MAX_QUERY]  # it stands in the journal, too
        known = self._conversations.find(payload.get("session_id", ""))
        has_turned = known.turns(await self._subject(prompt))
        is_asked = asks_for_memory(prompt)
        if not (has_turned or is_asked):
            return {}
        search = _Search(self._enter(config, payload))
        if is_asked:
            found = await search.recall(prompt, limit=_LOOKED_AT)
        else:
            found = await search.find(prompt, limit=_LOOKED_AT, min_score=_PROMPT_SCORE)
        chosen = [note for note in found if note.hash not in known.shown][:_FROM_PROMPT]
        answer = await _shown(config, chosen, search, share=_PROMPT_SHARE)
        shown = chosen[: answer.get("notes", 0)]
        known.saw(shown)
        self._book(config, payload, "prompt", search.that_brought(shown), answer)
        return answer

    def _book(
        self,
        config: Config,
        payload: dict[str, str],
        hook: str,
        asked: Sequence[AvoidedCall],
        answer: HookAnswer,
    ) -> None:
        if self._journal is not None and answer:
            book(self._journal, _origin(config, payload), hook, asked, answer["context"])

    def _enter(self, config: Config, payload: dict[str, str]) -> VerbDoor:
        return self._doors.enter(config, _origin(config, payload), "hook")

    async def _subject(self, prompt: str) -> Subject:
        words = frozenset(telling_words(prompt))
        if self._embedder is None or not words:
            return Subject(words=words, vector=())
        [row] = await anyio.to_thread.run_sync(self._embedder.embed, [prompt])
        return Subject(words=words, vector=tuple(float(part) for part in row))

    async def _record(
        self, config: Config, payload: dict[str, str], event: str, *, on: bool
    ) -> HookAnswer:
        if not on:
            return {}
        door = self._enter(config, payload)
        remarks = await record(door, config, payload, event=event, now=self._clock())
        return {"remarks": list(remarks)} if remarks else {}


class _Search:
    """Asks memory, and knows what an agent would have had to ask."""

    def __init__(self, door: VerbDoor) -> None:
        self._door = door
        self._answers: list[tuple[str, JsonObject, CompactSearchResult]] = []

    async def find(self, query: str, *, limit: int, min_score: float) -> FoundNotes:
        if not query:
            return ()
        return await self._ask("search", {"query": query, "limit": limit, "min_score": min_score})

    async def recall(self, query: str, *, limit: int) -> FoundNotes:
        return await self._ask("recall", {"query": query, "limit": limit})

    async def tagged(self, tag: str, *, limit: int) -> FoundNotes:
        return await self._ask("search_by_tag", {"tags": tag, "limit": limit})

    async def newest(self, *, limit: int) -> FoundNotes:
        return await self._ask("list", {"limit": limit})

    async def _ask(self, verb: str, arguments: JsonObject) -> FoundNotes:
        result: CompactSearchResult = await self._door.call(
            f"memory.{verb}", arguments, form=as_it_is, kept=as_json
        )
        self._answers.append((verb, arguments, result))
        return result.memories

    def that_brought(self, notes: FoundNotes) -> list[AvoidedCall]:
        """Return the calls that bring these notes and no others, each of them once.

        We look at more than we show; an agent would not have to.
        """
        wanted = {note.hash for note in notes}
        asked = []
        for verb, arguments, result in self._answers:
            brought = tuple(note for note in result.memories if note.hash in wanted)
            wanted -= {note.hash for note in brought}
            if brought:
                limited: JsonObject = {**arguments, "limit": len(brought)}
                answer = repr(result._replace(memories=brought))
                asked.append(AvoidedCall(f"memory_{verb}", limited, answer))
        return asked


async def _shown(
    config: Config,
    chosen: FoundNotes,
    search: _Search,
    *,
    about: str = "",
    share: int = 1,
) -> HookAnswer:
    """Return what the model shall read of notes, within the budget, and what that saves."""
    settings = config.settings.hooks
    project = (config.project or config.start_directory).name

    def write(lines: Sequence[str]) -> str:
        return fenced(lines, project=project, about=about, how=_HOW)

    def work() -> HookAnswer:
        budget = settings.budget_tokens // share
        text, number = fitted([line(note) for note in chosen], write, budget, count_tokens)
        if not number:
            return {}
        tokens = count_tokens(text)
        instead = tokens_as_tool_calls(search.that_brought(chosen[:number]))
        saved = instead - tokens
        figures: HookAnswer = {"notes": number, "tokens": tokens, "saved": saved}
        return {"context": text, **figures} | _message(settings, number, tokens, instead, share)

    return await anyio.to_thread.run_sync(work) if chosen else {}


def _origin(config: Config, payload: dict[str, str]) -> Origin:
    project = str(config.project or config.start_directory)
    return Origin(client="hook", request=payload.get("session_id", ""), project=project)


def _git_location(config: Config) -> GitLocation:
    return GitLocation(
        directory=config.start_directory, search_path=config.search_path, home=config.home
    )


def _message(
    settings: HookSettings, number: int, tokens: int, instead: int, share: int
) -> HookAnswer:
    if not settings.message or share > 1:
        return {}
    return {
        "message": f"toolfold: {count(number, 'note')} from memory in {tokens:,} tokens; "
        f"asking for them by tools would take {instead:,}."
    }


def _payload(request: JsonObject) -> dict[str, str]:
    payload: Any = request.get("payload")
    if not isinstance(payload, dict):
        return {}
    return {key: value for key, value in payload.items() if isinstance(value, str)}
