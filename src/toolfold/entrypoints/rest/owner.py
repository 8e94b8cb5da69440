"""What is configured here, for the local user alone: rules, personal data, settings, skills."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, fields, is_dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import anyio.to_thread

from toolfold.app import App
from toolfold.config.config import Config
from toolfold.config.settings import Settings
from toolfold.entrypoints.rest.operations import (
    Operation,
    RestRequest,
    closed_object,
    owned,
    whole_object,
)
from toolfold.entrypoints.rest.runs import read_runs
from toolfold.errors import BadInput
from toolfold.execution.modules.skills import not_saved
from toolfold.execution.skill_tests import SkillTests
from toolfold.execution.trust.approval_form import policy_files, rules_in_force
from toolfold.execution.trust.approvals import approvals_of, scope_of
from toolfold.execution.trust.guard import facts_of
from toolfold.journal.decisions import RevealEvent
from toolfold.jsontypes import Json, JsonObject
from toolfold.policy.decide import decide, explain
from toolfold.skills.models import Skill, SkillFault, SkillTexts

_TEXT: Final[JsonObject] = {"type": "string"}
_COUNT: Final[JsonObject] = {"type": "integer", "minimum": 0}
_NAME: Final[JsonObject] = {"type": "string", "minLength": 1, "maxLength": 200}
_RULE: Final = whole_object(
    {
        "action": _TEXT,
        "rule": _TEXT,
        "from": _TEXT,
        "reason": {**_TEXT, "description": "The start of the reasons that its decisions give."},
        "decided": _COUNT,
    }
)
_SKILL: Final = whole_object(
    {
        "name": _TEXT,
        "scope": _TEXT,
        "signature": _TEXT,
        "description": _TEXT,
        "used": _COUNT,
        "succeeded": _COUNT,
        "last_error": {"type": ["string", "null"]},
        "fault": {"type": ["string", "null"]},
    }
)
_CHECK: Final = whole_object(
    {
        "name": _TEXT,
        "status": {"enum": ["ok", "fixed", "FAILED", "off", "!"]},
        "detail": _TEXT,
        "seconds": {"type": ["number", "null"]},
        "fix": _TEXT,
    }
)
_VERSION: Final = whole_object({"number": _COUNT, "saved_at": {"type": "number"}, "how": _TEXT})


Examine: TypeAlias = Callable[[App], Awaitable[list[JsonObject]]]
"""Looks at every part as `toolfold doctor` does, and says what came of it."""


def owner_operations(examine: Examine | None = None) -> list[Operation]:
    """Return all of them; `examine` is what looks at every part."""

    async def answer_doctor(request: RestRequest, _arguments: JsonObject) -> Json:
        owned(request)
        if examine is None:
            raise BadInput("Nothing can be examined here. Run `toolfold doctor` in a terminal.")
        return {"checks": [*await examine(request.app)]}

    return [
        Operation(
            method="POST",
            path="/doctor",
            summary="Try every part, and say what to do where one does not work.",
            tag="owner",
            returns=whole_object({"checks": {"type": "array", "items": _CHECK}}),
            answer=answer_doctor,
        ),
        Operation(
            method="GET",
            path="/policy",
            summary="The rules in their order, and how often each decided.",
            tag="owner",
            returns=whole_object({"approvals": _TEXT, "rules": {"type": "array", "items": _RULE}}),
            answer=_policy,
        ),
        Operation(
            method="POST",
            path="/policy/check",
            summary="What would happen to a call, and why. Nothing is called.",
            tag="owner",
            takes=closed_object(
                {
                    "tool": _NAME,
                    "arguments": {"type": "object", "default": {}},
                    "count": {"type": "integer", "minimum": 1, "maximum": 1_000_000, "default": 1},
                },
                required=("tool",),
            ),
            returns=whole_object(
                {
                    "tool": _TEXT,
                    "action": _TEXT,
                    "why": _TEXT,
                    "always_allowed": {"type": "boolean"},
                    "steps": {"type": "array", "items": _TEXT},
                }
            ),
            answer=_check,
        ),
        Operation(
            method="GET",
            path="/privacy",
            summary="What is concealed, from whom, and how much the vault holds.",
            tag="owner",
            returns=whole_object(
                {
                    "mode": _TEXT,
                    "servers": {
                        "type": "array",
                        "items": whole_object(
                            {
                                "name": _TEXT,
                                "concealed": {"type": "boolean"},
                                "receives": {"type": ["array", "null"], "items": _TEXT},
                                "untrusted": {"type": "boolean"},
                            }
                        ),
                    },
                    "vault": {"type": "object", "additionalProperties": _COUNT},
                }
            ),
            answer=_privacy,
        ),
        Operation(
            method="POST",
            path="/privacy/reveal",
            summary="A text with its placeholders replaced by their values; audited.",
            tag="owner",
            takes=closed_object(
                {"text": {**_TEXT, "minLength": 1, "maxLength": 10_000}, "reason": _NAME},
                required=("text", "reason"),
            ),
            returns=whole_object({"text": _TEXT, "unknown": {"type": "array", "items": _TEXT}}),
            answer=_reveal,
        ),
        Operation(
            method="GET",
            path="/settings",
            summary="Settings that differ from their default, the files read, their faults.",
            tag="owner",
            returns=whole_object(
                {
                    "settings": {
                        "type": "array",
                        "items": whole_object(
                            {"key": _TEXT, "value": {}, "default": {}, "from": _TEXT}
                        ),
                    },
                    "sources": {"type": "array", "items": _TEXT},
                    "faults": {"type": "array", "items": _TEXT},
                    "directories": {"type": "object", "additionalProperties": _TEXT},
                }
            ),
            answer=_settings,
        ),
        Operation(
            method="GET",
            path="/skills",
            summary="Every skill, how often it was used, and what is wrong with those that fail.",
            tag="owner",
            returns=whole_object({"skills": {"type": "array", "items": _SKILL}}),
            answer=_skills,
        ),
        Operation(
            method="GET",
            path="/skills/{name}",
            summary="One skill with its source and versions.",
            tag="owner",
            takes=closed_object({"name": _NAME}, required=("name",)),
            returns=whole_object(
                {"skill": _SKILL, "source": _TEXT, "versions": {"type": "array", "items": _VERSION}}
            ),
            answer=_skill,
        ),
        Operation(
            method="POST",
            path="/skills/{name}/rollback",
            summary="Bring an earlier version of a skill back.",
            tag="owner",
            takes=closed_object({"name": _NAME, "version": _COUNT}, required=("name", "version")),
            returns=whole_object({"version": _COUNT}),
            answer=_rollback,
        ),
        Operation(
            method="PATCH",
            path="/skills/{name}",
            summary="Change the source of a skill; it is checked before it is saved.",
            tag="owner",
            takes=closed_object(
                {"name": _NAME, "source": {**_TEXT, "minLength": 1}}, required=("name", "source")
            ),
            returns=whole_object({"version": _COUNT}),
            answer=_edit,
        ),
        Operation(
            method="POST",
            path="/skills/{name}/test",
            summary="Run a skill against the answers that were recorded of its last good run.",
            tag="owner",
            takes=closed_object({"name": _NAME}, required=("name",)),
            returns=whole_object(
                {
                    "calls": _COUNT,
                    "has_changed": {"type": "boolean"},
                    "differences": {"type": "array", "items": _TEXT},
                }
            ),
            answer=_test,
        ),
    ]


async def _policy(request: RestRequest, _arguments: JsonObject) -> Json:
    config = owned(request)
    decided = await read_runs(request.app, lambda journal: journal.rule_counts()) or {}
    rules = await anyio.to_thread.run_sync(lambda: list(rules_in_force(config)))
    return {
        "approvals": config.settings.approvals,
        "rules": [
            {
                "action": each.action,
                "rule": each.text,
                "from": each.origin,
                "reason": each.reason,
                "decided": sum(
                    count
                    for why, count in decided.items()
                    if each.reason and why.startswith(each.reason)
                ),
            }
            for each in rules
        ],
    }


async def _check(request: RestRequest, arguments: JsonObject) -> Json:
    config, given = owned(request), arguments.get("arguments", {})
    assert isinstance(given, dict)  # noqa: S101  # the schema says so
    tool, count = (
        request.app.catalog.find(str(arguments["tool"])),
        int(str(arguments.get("count", 1))),
    )
    facts, policy = facts_of(tool), policy_files(config).policy("")
    decision = decide(policy, facts, given, count)
    scope = scope_of(config.namespace, "")
    is_allowed = await anyio.to_thread.run_sync(
        approvals_of(config).is_always_allowed, scope, facts.name
    )
    return {
        "tool": facts.name,
        "action": decision.action.name.lower(),
        "why": decision.why,
        "always_allowed": is_allowed,
        "steps": list(explain(policy, facts, given, count)),
    }


async def _privacy(request: RestRequest, _arguments: JsonObject) -> Json:
    config, privacy = owned(request), request.app.privacy
    has_vault = request.app.shared.vaults.is_there
    vault = request.app.shared.vaults.vault(config.namespace, config.settings.privacy.patterns)
    servers: list[Json] = []
    for server in config.servers:
        kinds = privacy.receives(server.name)
        receives: Json = None if kinds is None else [*sorted(kinds)]
        servers.append(
            {
                "name": server.name,
                "concealed": privacy.conceals(server.name),
                "receives": receives,
                "untrusted": server.untrusted,
            }
        )
    counts: JsonObject = dict(vault.counts) if has_vault else {}
    return {"mode": config.settings.privacy.mode, "servers": servers, "vault": counts}


async def _reveal(request: RestRequest, arguments: JsonObject) -> Json:
    """Reveal once the audit log has it: of which kinds and why, never what."""
    config = owned(request)
    vault = request.app.shared.vaults.vault(config.namespace, config.settings.privacy.patterns)
    revealed = await anyio.to_thread.run_sync(vault.reveal, str(arguments["text"]))
    code = f"# The user had placeholders revealed on the dashboard: {arguments['reason']}"
    with request.app.shared.journal.begin(request.origin, code, kind="reveal") as run:
        for kind, number in revealed.revealed.items():
            run.reveal(RevealEvent(position=0, upstream="the user", kind=kind, count=number))
        run.end(failure=None, reply="")
    unknown: list[Json] = list(revealed.unknown)
    return {"text": str(revealed.value), "unknown": unknown}


async def _settings(request: RestRequest, _arguments: JsonObject) -> Json:
    config = owned(request)
    directories = asdict(config.directories)
    changed = _changed(config.settings, Settings())
    return {
        "settings": [{**each, "from": _origin(config, str(each["key"]))} for each in changed],
        "sources": [str(each) for each in config.sources],
        "faults": [str(each) for each in config.faults],
        "directories": {name: str(each) for name, each in directories.items()},
    }


def _origin(config: Config, key: str) -> str:
    """Return where a setting was said, or the first of the settings in a table."""
    known = (
        origin
        for said, origin in config.origins.items()
        if said == key or said.startswith(f"{key}.")
    )
    return next(known, "")


def _changed(value: Any, default: Any, path: Sequence[str] = ()) -> list[JsonObject]:
    """Return what differs from its default, each with its dotted key."""
    if is_dataclass(value) and not isinstance(value, type) and type(value) is type(default):
        found: list[JsonObject] = []
        for each in fields(value):
            inner = (*path, each.name)
            found += _changed(getattr(value, each.name), getattr(default, each.name), inner)
        return found
    if value == default:
        return []
    return [{"key": ".".join(path), "value": str(value), "default": str(default)}]


async def _skills(request: RestRequest, _arguments: JsonObject) -> Json:
    owned(request)
    library = request.app.library
    found = await anyio.to_thread.run_sync(library.all)
    return {"skills": [_skill_json(request, each) for each in found]}


async def _skill(request: RestRequest, arguments: JsonObject) -> Json:
    owned(request)
    library, name = request.app.library, str(arguments["name"])
    skill = await anyio.to_thread.run_sync(library.find, name)
    versions = await anyio.to_thread.run_sync(library.versions, name)
    return {
        "skill": _skill_json(request, skill),
        "source": skill.texts.source,
        "versions": [
            {"number": each.number, "saved_at": each.saved_at, "how": each.how} for each in versions
        ],
    }


async def _rollback(request: RestRequest, arguments: JsonObject) -> Json:
    owned(request)
    name, number = str(arguments["name"]), int(str(arguments["version"]))
    _, version = await anyio.to_thread.run_sync(request.app.library.rollback, name, number)
    return {"version": version}


async def _edit(request: RestRequest, arguments: JsonObject) -> Json:
    owned(request)
    library = request.app.library
    skill = await anyio.to_thread.run_sync(library.find, str(arguments["name"]))
    draft = library.edited(skill, SkillTexts(skill.texts.manifest, str(arguments["source"])))
    _, findings = await request.app.runtime.check_skill(draft.skill)
    if findings:
        raise BadInput(not_saved(draft.skill, findings))
    version = await anyio.to_thread.run_sync(partial(library.save, draft, how="edited"))
    return {"version": version}


async def _test(request: RestRequest, arguments: JsonObject) -> Json:
    config, app = owned(request), request.app
    tests = SkillTests(app.library, app.catalog, app.tiers, config.settings.limits)
    test = await tests.test(str(arguments["name"]))
    return {
        "calls": test.calls,
        "has_changed": test.has_changed,
        "differences": [*test.differences],
    }


def _skill_json(request: RestRequest, found: Skill | SkillFault) -> JsonObject:
    if isinstance(found, SkillFault):
        known: JsonObject = {"signature": "", "description": "", "used": 0, "succeeded": 0}
        return {
            "name": found.name, "scope": found.scope, **known,
            "last_error": None, "fault": found.reason,
        }  # fmt: skip
    usage = request.app.library.usage(found)
    return {
        "name": found.name,
        "scope": found.scope,
        "signature": found.signature,
        "description": found.description,
        "used": usage.used,
        "succeeded": usage.succeeded,
        "last_error": usage.last_error,
        "fault": None,
    }
