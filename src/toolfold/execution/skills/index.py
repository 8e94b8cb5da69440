"""Shelf: skills beside tools, where tools are searched."""

from toolfold.catalog.catalog import Catalog
from toolfold.catalog.search.discovery import ToolIndex
from toolfold.catalog.tool import ListedTool, Tool, built_in_server
from toolfold.errors import BadInput, NotFound
from toolfold.skills.library import Library
from toolfold.skills.models import Skill, SkillFault
from toolfold.skills.names import parse_name


class ToolAndSkillIndex:
    """One index over tools and skills, made anew when either changes."""

    def __init__(self, catalog: Catalog, library: Library) -> None:
        self._catalog = catalog
        self._library = library
        self._made: tuple[ToolIndex, tuple[str, ...], ToolIndex] | None = None
        self._skills: dict[str, Skill] = {}

    @property
    def index(self) -> ToolIndex:
        """Search over all tools and skills."""
        of_tools, skills = self._catalog.index, self._library.skills()
        key = tuple(f"{skill.name} {skill.texts.digest}" for skill in skills)
        if self._made is None or self._made[0] is not of_tools or self._made[1] != key:
            self._skills = {f"skills.{skill.name}": skill for skill in skills}
            tools = [*self._catalog.tools, *map(_as_tool, skills)]
            self._made = (of_tools, key, ToolIndex(tools) if skills else of_tools)
        return self._made[2]

    def skill(self, tool: Tool) -> Skill | None:
        """Return the skill that a hit stands for, if it does."""
        return self._skills.get(tool.path) if tool.is_built_in or "." in tool.module else None

    def named(self, name: str) -> Skill | None:
        """Return the skill `skills.<name>`; None if there is none."""
        try:
            return self._library.find(parse_name(name))
        except (BadInput, NotFound):
            return None

    def lines(self) -> list[str]:
        """Say how many skills there are, and which cannot be used."""
        found = self._library.all()
        broken = [each for each in found if isinstance(each, SkillFault)]
        told = [f"skill {each.name}: not usable: {each.reason}" for each in broken]
        count = len(found) - len(broken)
        return [f"saved skills: {count} (skills.search)", *told] if count else told


def shown_hit(skill: Skill, detail: str) -> str:
    """Return what is said of a skill that was found."""
    if detail == "name":
        return f"skills.{skill.name}"
    return skill.documented if detail == "full" else f"{skill.line}  [{skill.usage}]"


def _as_tool(skill: Skill) -> Tool:
    """Stand for a skill where tools are ranked."""
    module, _, function = f"skills.{skill.name}".rpartition(".")
    return Tool(
        server=built_in_server("skills"),
        module=module,
        function=function,
        listed=ListedTool(
            name=function,
            description=skill.description,
            input_schema={
                "type": "object",
                "properties": {name: {} for name in skill.function.names},
            },
        ),
    )
