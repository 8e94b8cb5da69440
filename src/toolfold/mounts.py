"""What guest code can import without any server, as the catalog lists it."""

from typing import Final

from toolfold.catalog.tool import ListedTool, Returned
from toolfold.execution import skills_module
from toolfold.memory import definitions
from toolfold.memory.verbs import VERBS, Verb
from toolfold.workspace import verbs as workspace_verbs

MODULE: Final = "workspace"
"""The module that looks at files."""


def built_in_tools() -> dict[str, tuple[ListedTool, ...]]:
    """Return the tools of each built-in module, but for what is the user's business."""
    modules: dict[str, tuple[ListedTool, ...]] = {}
    for verb in (verb for verb in VERBS.values() if not verb.is_for_users):
        modules[verb.module] = (*modules.get(verb.module, ()), _listed(verb))
    modules[MODULE] = tuple(map(_listed_verb, workspace_verbs.VERBS))
    return {**modules, "skills": skills_module.TOOLS}


def _listed_verb(verb: workspace_verbs.Verb) -> ListedTool:
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


def _listed(verb: Verb) -> ListedTool:
    return ListedTool(
        name=verb.name,
        description=definitions.description(verb),
        input_schema=definitions.input_schema(verb),
        read_only=verb.effect == "reads",
        destructive=verb.effect in {"removes", "destroys"},
        idempotent=verb.may_repeat,
        positional=definitions.positional(verb),
        returned=Returned(*definitions.returned(verb)),
    )
