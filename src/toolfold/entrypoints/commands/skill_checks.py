"""`toolfold skills edit` and `test`, which need a sandbox."""

import dataclasses
import shlex
import subprocess
import tempfile
from argparse import Namespace
from pathlib import Path

from toolfold.app import App
from toolfold.config.config import environment
from toolfold.entrypoints.commands.local import with_app
from toolfold.entrypoints.commands.options import config_of
from toolfold.entrypoints.screen import print_json
from toolfold.errors import BadInput, NotFound
from toolfold.execution.modules.skills import not_saved
from toolfold.execution.skill_tests import SkillTests, describe_test
from toolfold.skills.folders import MANIFEST, SOURCE
from toolfold.skills.library import open_library
from toolfold.skills.models import Skill, SkillTexts, parse_name


def skills_edit(arguments: Namespace) -> int:
    """Open a skill in the user's editor; what does not stand the check is not taken over."""
    config = config_of(arguments)
    skill = open_library(config).find(parse_name(arguments.name))
    with tempfile.TemporaryDirectory(prefix="toolfold-") as directory:
        files = [Path(directory) / SOURCE, Path(directory) / MANIFEST]
        for file, text in zip(files, (skill.texts.source, skill.texts.manifest), strict=True):
            file.write_text(text, encoding="utf-8")
        command = [*shlex.split(_editor()), *map(str, files)]
        try:
            status = subprocess.run(command, check=False).returncode  # noqa: S603  # the user's own
        except OSError as error:
            raise BadInput(f"The editor {command[0]!r} does not start: set $EDITOR.") from error
        texts = SkillTexts(
            files[1].read_text(encoding="utf-8"), files[0].read_text(encoding="utf-8")
        )
        if status or texts == skill.texts:
            print("Nothing was changed.")
            return status
        return with_app(config, lambda app: _take_over(app, skill, texts))


async def _take_over(app: App, skill: Skill, texts: SkillTexts) -> int:
    draft = app.library.edited(skill, texts)
    _, findings = await app.runtime.check_skill(draft.skill)
    if findings:
        prefix = f"{skill.folder.name}-"
        with tempfile.NamedTemporaryFile("w", prefix=prefix, suffix=".py", delete=False) as kept:
            kept.write(texts.source)
        raise BadInput(f"{not_saved(draft.skill, findings)}\nWhat you wrote is in {kept.name}.")
    print(f"Saved {skill.name}, version {app.library.save(draft, how='edited')}.")
    return 0


def skills_test(arguments: Namespace) -> int:
    """Run skills against recorded answers; 1 if any differs."""

    async def action(app: App) -> int:
        tests = SkillTests(app.library, app.catalog, app.tiers, app.config.settings.limits)
        names = [parse_name(name) for name in arguments.name]
        status, told = 0, []
        for skill in [app.library.find(name) for name in names] or app.library.skills():
            try:
                test = await tests.test(skill.name)
            except NotFound as error:
                told.append({"name": skill.name, "tested": False, "message": str(error)})
                if not arguments.json:
                    print(f"{skill.name}: not tested: {error}")
                status = status or int(bool(names))
                continue
            told.append({**dataclasses.asdict(test), "tested": True, "message": ""})
            if not arguments.json:
                print(describe_test(test, skill))
            status = 1 if test.differences else status
        if arguments.json:
            print_json(told)
        return status

    return with_app(config_of(arguments), action)


def _editor() -> str:
    variables = environment()
    return variables.get("VISUAL") or variables.get("EDITOR") or "vi"
