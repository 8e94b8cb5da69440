"""Say before a program runs whether the user shall be asked about it."""

from collections.abc import Iterable
from typing import Any, Final

import anyio
import anyio.to_thread

from toolfold.app import App
from toolfold.errors import ConfigError, NotFound
from toolfold.execution.analysis.imports import as_people_write
from toolfold.execution.analysis.uses import ToolUses, tool_uses
from toolfold.execution.modules import runs as runs_module
from toolfold.execution.modules import tools as discovery_module
from toolfold.execution.sessions.bindings import SessionInfo
from toolfold.execution.trust.preapproval import Preapproval
from toolfold.policy.decide import Policy, Ruling
from toolfold.policy.rules import Action

_LEARNING_S: Final = 1.5
_MAX_TOOLS: Final = 8
_UNASKED_MODES: Final = frozenset({"bypassPermissions", "dontAsk"})
_OURS: Final = {"tools": discovery_module.MODULE.functions, "runs": runs_module.MODULE.functions}
_READING: Final = frozenset({*(f"tools.{each}" for each in _OURS["tools"]), *runs_module.READ_ONLY})


class ProgramReview:
    """Reads one program for the hook of a client that knows the program before it is called."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._catalog = app.catalog
        self._trust = app.border.trust

    async def answer(self, payload: dict[str, str]) -> dict[str, Any]:
        """Return `allow` where a program surely only reads, `ask` where it may do more.

        Empty where the client's own decision stands: where the user wants no questions, or has
        allowed for good what is more than reading.
        """
        settings = self._app.config.settings
        code, tool_use = payload.get("code"), payload.get("tool_use_id")
        is_wanted = settings.approvals == "auto" and settings.hooks.pre_tool_use
        is_wanted = is_wanted and payload.get("permission_mode") not in _UNASKED_MODES
        if not is_wanted or not code or not tool_use:
            return {}
        session, conversation = payload.get("session", ""), payload.get("session_id", "")
        uses = await self._uses(code)
        hidden = [*uses.hidden, *await self._of_session(uses, session, conversation)]
        asked, is_reading = await self._sorted(uses.tools)
        if not (hidden or asked or is_reading):
            return {}
        found = Preapproval(
            scope=self._trust.scope,
            tools=frozenset(asked),
            is_asked=bool(hidden or asked),
            conversation=conversation,
        )
        self._trust.preapprovals.note(tool_use, code, session, found)
        if found.is_asked:
            return {"decision": "ask", "reason": _question(asked, hidden)}
        return {"decision": "allow", "reason": "toolfold: it only reads."}

    async def _uses(self, code: str) -> ToolUses:
        modules = frozenset(self._catalog.spellings)
        with anyio.move_on_after(_LEARNING_S):  # what is not known by then is asked about
            await self._catalog.learn(each for each in modules if each in code)
        return tool_uses(
            code,
            modules | _OURS.keys() | {"toolfold"},
            self._is_tool,
            max_bytes=self._app.config.settings.limits.code_bytes,
        )

    def _is_tool(self, module: str, function: str) -> bool:
        if module in _OURS and module not in self._catalog.servers:
            return function in _OURS[module]
        return self._catalog.has(module, function)

    async def _sorted(self, tools: Iterable[str]) -> tuple[list[str], bool]:
        """Return the tools that the user is to be asked about, and whether all others read."""
        try:
            policy = self._app.border.policy("")
        except ConfigError:
            return [], False  # nothing will be called
        asked, is_reading = [], True
        for path in tools:
            if path in _READING and path.partition(".")[0] not in self._catalog.servers:
                continue
            name, reads, is_allowed = await self._judged(path, policy)
            is_reading = is_reading and reads
            if not reads and not is_allowed:
                asked.append(name)
        return asked, is_reading

    async def _judged(self, path: str, policy: Policy) -> tuple[str, bool, bool]:
        """Return a tool's own name, whether it surely reads, and whether it is allowed for good."""
        try:
            tool = self._catalog.find(path)
        except NotFound:
            return path, False, path.startswith("runs.")
        facts = self._app.reach.facts_of(tool)
        decision = Ruling(policy, facts).decide({})
        if decision.action is Action.ALLOW and facts.read_only:
            return facts.name, True, True
        is_allowed = decision.action is Action.ALLOW and (tool.is_built_in or bool(decision.rule))
        is_allowed = is_allowed or decision.action is Action.DENY  # which the run will be told
        if not is_allowed:
            allowed = self._trust.approvals.is_always_allowed
            is_allowed = await anyio.to_thread.run_sync(allowed, self._trust.scope, facts.name)
        return facts.name, False, is_allowed

    async def _of_session(self, uses: ToolUses, session: str, conversation: str) -> list[str]:
        """Return what a program takes from its session that may be more than a plain value.

        Where it is not known which session that will be, it may be any.
        """
        known = session or self._trust.preapprovals.session_of(self._trust.scope, conversation)
        sessions = await anyio.to_thread.run_sync(self._app.sessions.list)
        suspects: set[str] = set()
        for info in sessions:
            if not known or info.name == known:
                suspects |= self._not_imported(info, uses.reads)
        if known and suspects:
            suspects -= await self._app.runtime.plain_names(known, suspects)
        return [f"{name} is the session's" for name in sorted(suspects)[:_MAX_TOOLS]]

    def _not_imported(self, info: SessionInfo, reads: frozenset[str]) -> set[str]:
        """Return the names that a session has otherwise than by an import that is harmless."""
        bound = info.bindings
        shared = reads.intersection(bound.names)
        return {name for name in shared if not self._is_harmless(name, bound.imports.get(name))}

    def _is_harmless(self, name: str, statement: str | None) -> bool:
        if statement is None:
            return False
        text = as_people_write(statement)
        if name in self._catalog.spellings or name in _OURS:
            return text == f"import {name}"
        modules = frozenset(self._catalog.spellings)
        return not tool_uses(text, modules, self._is_tool, max_bytes=len(text) * 4).hidden


def _question(asked: list[str], hidden: list[str]) -> str:
    """Say what a person decides about."""
    parts = []
    if asked:
        more = f" and {len(asked) - _MAX_TOOLS} more" if len(asked) > _MAX_TOOLS else ""
        parts.append(f"it calls {', '.join(asked[:_MAX_TOOLS])}{more}")
    if hidden:
        parts.append(f"some of its calls cannot be seen in its text: {'; '.join(hidden)}")
    return f"toolfold: {', and '.join(parts)}."
