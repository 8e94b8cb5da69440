"""Where the skills of a configuration are."""

import hashlib

from toolfold.config.config import Config
from toolfold.skills.folders import Root
from toolfold.skills.library import Library
from toolfold.skills.models import SkillScope
from toolfold.skills.store import SkillStore


def open_library(config: Config, skill_store: SkillStore | None = None) -> Library:
    """Return the skills that there are for a configuration: those of the project and the user.

    Who comes with a key of another namespace has skills of that namespace alone.
    """
    data = config.directories.data
    if config.is_tenant:
        own = data / "tenants" / hashlib.sha256(config.namespace.encode()).hexdigest()[:16]
        roots: dict[SkillScope, Root] = {"user": Root("user", own / "skills", within=own)}
    else:
        user = config.directories.config
        roots = {"user": Root("user", user / "skills", within=user)}
        if project := config.project:
            roots["project"] = Root("project", project / ".toolfold" / "skills", within=project)
    return Library(roots, skill_store or SkillStore(data / "skills.db"), lock=data / "skills")
