"""What guest code can import without any server, as the catalog lists it."""

from functools import cache
from typing import Final

from toolfold.catalog.tool import ListedTool, Returned
from toolfold.jsontypes import Json, JsonObject
from toolfold.memory import verbs
from toolfold.memory.verbs import VERBS, Verb
from toolfold.workspace import verbs as workspace_verbs


def built_in_tools(*, for_users: bool = False) -> dict[str, tuple[ListedTool, ...]]:
    """Return the tools of each built-in module; what is the user's business only for users."""
    modules: dict[str, tuple[ListedTool, ...]] = {}
    for verb in (verb for verb in VERBS.values() if for_users or not verb.is_for_users):
        modules[verb.module] = (*modules.get(verb.module, ()), _listed(verb))
    modules[workspace_verbs.MODULE] = tuple(map(_listed_verb, workspace_verbs.VERBS))
    return {**modules, "skills": _SKILL_VERBS}


def _listed_verb(verb: workspace_verbs.WorkspaceVerb) -> ListedTool:
    return ListedTool(
        name=verb.name,
        description=verb.description,
        input_schema={
            "type": "object",
            "properties": verb.parameters,
            "required": list(verb.required),
        },
        read_only=verb.effect == "reads",
        destructive=verb.effect == "removes",
        idempotent=verb.effect == "reads",
        positional=tuple(verb.parameters),
        returned=Returned(verb.returns, ()),
    )


@cache
def _listed(verb: Verb) -> ListedTool:
    return ListedTool(
        name=verb.name,
        description=verbs.description(verb),
        input_schema=verbs.input_schema(verb),
        read_only=verb.effect == "reads",
        destructive=verb.effect in {"removes", "destroys"},
        idempotent=verb.may_repeat,
        positional=verbs.positional(verb),
        returned=Returned(*verbs.returned(verb)),
    )


def _skill_verb(
    name: str,
    description: str,
    required: dict[str, str],
    *,
    read_only: bool,
    **optional: Json,
) -> ListedTool:
    properties: JsonObject = {
        each: {"type": "string", "description": said} for each, said in required.items()
    }
    return ListedTool(
        name=name,
        description=description,
        input_schema={
            "type": "object",
            "properties": {**properties, **optional},
            "required": list(required),
            "additionalProperties": False,
        },
        read_only=read_only,
        destructive=False,
        positional=(*required, *optional),
        returned=Returned("str", ()),
    )


_SKILL_VERBS: Final = (
    _skill_verb(
        "save",
        "Save a function that worked as a skill, for later runs to import: "
        "`from skills import weekly_report`. It is checked, and versions are kept.",
        {
            "name": "The function's name, with groups: 'weekly_report', 'github.stale_issues'.",
            "source": "The code, or the name of a function of this run, which is taken with the "
            "imports, constants and helpers that it needs. It needs a docstring.",
            "description": "What it does and when to use it; search finds it by this.",
        },
        read_only=False,
        scope={
            "type": "string",
            "enum": ["project", "user"],
            "description": "For this project (default), or for all of yours.",
        },
    ),
    _skill_verb(
        "search",
        "Find saved skills by what they do, best first.",
        {"query": "What it should do."},
        read_only=True,
        limit={"type": "integer", "description": "How many; 5 if left out."},
    ),
    _skill_verb(
        "show",
        "Show a skill: how to call it, how it has done, its code.",
        {"name": "The skill."},
        read_only=True,
    ),
    _skill_verb(
        "delete",
        "Take a skill away. Its versions stay: `toolfold skills rollback` brings it back.",
        {"name": "The skill."},
        read_only=False,
    ),
)
