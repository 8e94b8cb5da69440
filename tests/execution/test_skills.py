"""Skills in real runs, on both interpreters."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support import ROOT, Running, test_server, write_config

from toolfold.app import running_app
from toolfold.config.config import load_config
from toolfold.execution.skill_tests import SkillTests, describe_test
from toolfold.sandbox.cpython.kernel import missing_walls

NULL = {"null": test_server("null")}
TIERS = [
    "monty",
    pytest.param(
        "cpython",
        marks=pytest.mark.skipif(missing_walls() is not None, reason=str(missing_walls())),
    ),
]

SHOUT = '''
import null

MARK = "!"

def _loud(text):
    return text.strip('"').upper() + MARK

def shout(text: str, times: int = 1) -> list[str]:
    """Say a text loudly, so many times."""
    return [_loud(null.echo(value=text)) for _ in range(times)]
'''


@pytest.fixture(scope="module")
def home_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


@pytest.fixture
def project(home_project: Path) -> Path:
    """A project without skills."""
    folder = home_project / ".toolfold" / "skills"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return home_project


def put(
    project: Path, name: str, source: str, description: str = "Made by hand for a test."
) -> Path:
    folder = project / ".toolfold" / "skills" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "skill.py").write_text(source)
    manifest = f"---\nname: {folder.name}\ndescription: {description}\n---\n"
    (folder / "SKILL.md").write_text(manifest)
    return folder


@asynccontextmanager
async def opened(
    project: Path, servers: dict[str, Any], **settings: object
) -> AsyncIterator[Running]:
    config = load_config(
        config_file=write_config(project / "mcp.json", servers),
        cwd=project,
        environ={
            "PATH": os.environ["PATH"],
            "HOME": str(project),
            "TOOLFOLD_HOME": str(project / "home"),
        },
        overrides=settings,
    )
    async with running_app(config) as app:
        yield Running(app)


@pytest.fixture(params=TIERS, scope="module")
async def shared_app(request: pytest.FixtureRequest, home_project: Path) -> AsyncIterator[Running]:
    (home_project / ".toolfold").mkdir(exist_ok=True)
    async with opened(home_project, NULL, sandbox=request.param) as app:
        yield app


@pytest.fixture
def app(shared_app: Running, project: Path) -> Running:
    return shared_app


async def value_of(app: Running, code: str) -> object:
    result = await app.run(code)
    assert result.success, result.text
    return result.value


async def refusal_of(app: Running, code: str) -> str:
    result = await app.run(code)
    assert not result.success
    return result.text


async def test_a_function_of_a_run_becomes_a_skill_with_all_that_it_needs(app: Running) -> None:
    reply = await value_of(
        app,
        f"import skills\n{SHOUT}\nshout('hi')\n"
        "skills.save('shout', 'shout', 'Say something loudly')",
    )

    assert "from skills import shout" in str(reply)
    assert await value_of(app, "from skills import shout\nshout('hi', times=2)") == ["HI!", "HI!"]
    source = app.app.library.find("shout").texts.source
    assert "import null" in source
    assert "skills" not in source


@pytest.mark.parametrize("given", ["shout", "source=shout"])
async def test_a_function_itself_can_be_given_to_save(app: Running, given: str) -> None:
    told = "description='Say something loudly'"

    await value_of(app, f"import skills\n{SHOUT}\nskills.save('shout', {given}, {told})")

    assert await value_of(app, "from skills import shout\nshout('hi')") == ["HI!"]


@pytest.mark.parametrize(
    "code",
    [
        "from skills import shout\nshout('a')",
        "from skills import shout as f, shout\nf('a')",
        "from skills import (\n    shout as f,\n\n    save,\n)\nf('a')",
        "def g():\n    from skills import shout\n    return shout('a')\ng()",
        "class C:\n  def m(self):\n    from skills import shout\n    return shout('a')\nC().m()",
        "import skills\nskills.shout('a')",
        "import skills as s\n[each for each in s.shout('a')]",
        "import skills\nf = skills.shout\nf('a')",
        "MARK = '?'\n_loud = 1\nfrom skills import shout\nshout('a')",
        "from skills import shout\nshout = shout('a')\nshout",
        "é = 'a'; from skills import shout; shout(é)",
        "try:\n  from skills import no\nexcept Exception:\n  from skills import shout\nshout('a')",
    ],
)
async def test_skills_are_imported_in_all_ways_that_python_has(
    app: Running, project: Path, code: str
) -> None:
    put(project, "shout", SHOUT)

    assert await value_of(app, code) == ["A!"]


@pytest.mark.parametrize(
    "code",
    [
        "from skills.loud import shout\nshout('a')",
        "from skills import loud\nloud.shout('a')",
        "import skills.loud\nskills.loud.shout('a')",
        "import skills.loud as l\nl.shout('a')",
        "import skills\nskills.loud.shout('a')",
    ],
)
async def test_groups_are_folders(app: Running, project: Path, code: str) -> None:
    put(project, "loud/shout", SHOUT)

    assert await value_of(app, code) == ["A!"]


async def test_skills_use_skills_and_equal_helpers_do_not_meet(app: Running, project: Path) -> None:
    put(
        project,
        "one",
        'def _helper():\n    return 1\ndef one():\n    """One."""\n    return _helper()',
    )
    put(
        project,
        "two",
        "from skills import one\ndef _helper():\n    return 2\n"
        'def two():\n    """Two."""\n    return [one(), _helper()]',
    )

    value = await value_of(
        app, "from skills import two, one\ndef _helper():\n    return 3\n[*two(), one(), _helper()]"
    )

    assert value == [1, 2, 1, 3]


async def test_a_skill_keeps_globals_of_its_own(app: Running, project: Path) -> None:
    put(
        project,
        "counting",
        "count = 0\ndef counting():\n"
        '    """Count."""\n    global count, last\n'
        "    count += 1\n    last = count\n    return last",
    )

    code = "count = 10\nfrom skills import counting\ncounting(); counting()\n[counting(), count]"

    assert await value_of(app, code) == [3, 10]


async def test_calls_inside_skills_are_awaited_where_they_say_so(
    app: Running, project: Path
) -> None:
    put(
        project,
        "both",
        "# höchst\nimport asyncio\nimport null\nasync def both(values):\n"
        '    """Echo all."""\n'
        "    first = null.echo(value=0)\n"
        "    return [first, *await asyncio.gather(*[null.echo(value=each) for each in values])]",
    )

    assert await value_of(app, "from skills import both\nawait both([1, 2])") == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("shout('a', tims=2)", ["no parameter 'tims'", "Did you mean 'times'?"]),
        ("shout()", ["needs text", "skills.shout(text: str, times: int = 1)"]),
        ("shout('a', 'b')", ["takes int", "Line 2"]),
        ("shout('a', 1, 2)", ["Too many positional arguments"]),
    ],
)
async def test_wrong_arguments_are_found_before_anything_runs(
    app: Running, project: Path, call: str, words: list[str]
) -> None:
    put(project, "shout", SHOUT)

    text = await refusal_of(app, f"from skills import shout\n{call}")

    assert "Nothing was run" in text
    assert "__skill" not in text
    assert all(word in text for word in words), text


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("from skills import shot", ["no skill 'shot'", "Did you mean 'shout'?"]),
        ("from skills.grp import x", ["no skill 'grp.x'"]),
        ("import skills\nskills.shot('a')", ["Line 2", "no skill 'shot'"]),
        ("from skills import *", ["name what you import"]),
        ("import skills.shout", ["from skills import shout"]),
        ("from skills import broken", ["cannot be used", "no function 'broken'"]),
        ("from skills import lost", ["no skill 'gone'", "line 1 of the skill 'lost'"]),
        ("from skills import ring", ["circle: ring -> gnir -> ring"]),
        ("from skills import typo", ["skill 'typo', line 4", "no tool 'ech'"]),
    ],
)
async def test_a_skill_that_cannot_be_had_is_told_with_what_to_do(
    app: Running, project: Path, code: str, words: list[str]
) -> None:
    put(project, "shout", SHOUT)
    put(project, "broken", "x = 1")
    put(project, "lost", 'from skills import gone\ndef lost():\n    """Lost."""')
    put(project, "ring", 'from skills import gnir\ndef ring():\n    """Ring."""')
    put(project, "gnir", 'from skills import ring\ndef gnir():\n    """Ring."""')
    put(project, "typo", 'import null\ndef typo():\n    """Err."""\n    null.ech(value=1)')

    text = await refusal_of(app, code)

    assert "Nothing was run" in text
    assert all(word in text for word in words), text


async def test_an_error_inside_a_skill_names_the_skill_and_its_line(
    app: Running, project: Path
) -> None:
    put(project, "halve", 'def halve(x):\n    """Halve."""\n    text = """\n"""\n    return 1 / x')

    text = await refusal_of(app, "from skills import halve\nprint('so far')\nhalve(0)")

    assert "Error on line 3: ZeroDivisionError: division by zero\n    halve(0)" in text
    assert "in the skill halve, line 5, in halve" in text
    usage = app.app.library.usage(app.app.library.find("halve"))
    assert (usage.used > 0, usage.succeeded) == (True, 0)
    assert usage.last_error == "in the skill: ZeroDivisionError: division by zero"


async def test_uses_are_counted_and_errors_elsewhere_are_told_apart(
    app: Running, project: Path
) -> None:
    put(project, "counted", SHOUT.replace("def shout", "def counted"))
    await value_of(app, "from skills import counted\ncounted('a')")
    await refusal_of(app, "from skills import counted\ncounted('a')\nraise ValueError('x')")
    await refusal_of(app, "from skills import counted\ncounted()")  # nothing ran

    usage = app.app.library.usage(app.app.library.find("counted"))

    assert usage.used == 2 * usage.succeeded > 0
    assert usage.last_error == "elsewhere in the run: ValueError: x"


async def test_a_skill_that_fails_when_it_is_defined_says_where(
    app: Running, project: Path
) -> None:
    put(project, "early", 'print("hello")\n{}["x"]\ndef early():\n    """Late."""')

    text = await refusal_of(app, "from skills import early\nearly()")

    assert "KeyError" in text
    assert "in the skill early, line 2" in text


@pytest.mark.parametrize(
    ("name", "source", "words"),
    [
        ("f", "def f(:", ["SyntaxError on line 1"]),
        ("f", "def g():\n    '''Doc.'''", ["no function 'f'", "it defines g"]),
        ("f", "def f():\n    pass", ["no docstring"]),
        ("f", "import null\ndef f():\n  '''Doc.'''\n  null.nope()", ["Line 4", "no tool 'nope'"]),
        ("f", "def f():\n    '''Doc.'''\n    return undefined", ["Line 3", "not defined"]),
        ("f", "from skills import gone\ndef f():\n    '''Doc.'''", ["no skill 'gone'"]),
        ("f", "def f():\n    '''Doc.'''\nawait f()", ["line 3", "inside a function"]),
        ("f", "nowhere", ["no function 'nowhere'"]),
        ("../x", "def x():\n    '''Doc.'''", ["cannot be called '../x'"]),
        ("os", "def os():\n    '''Doc.'''", ["hide the 'os'"]),
        ("class", "x = 1\n", ["meaning of its own"]),
        ("__init__", "x = 1\n", ["lower-case letters"]),
        ("save", "def save():\n    '''Doc.'''", ["meaning of its own"]),
    ],
)  # fmt: skip
async def test_what_is_no_good_skill_is_not_saved(
    app: Running, project: Path, name: str, source: str, words: list[str]
) -> None:
    text = await refusal_of(app, f"import skills\nskills.save({name!r}, {source!r}, 'A test')")

    assert all(word in text for word in words), text
    assert list((project / ".toolfold" / "skills").iterdir()) == []


@pytest.mark.parametrize(
    "call",
    [
        "skills.save(x, x, x)",
        "skills.search(x)",
        "skills.search('a', limit=x)",
        "skills.search('a', True)",
        "skills.show(x)",
        "skills.delete(x)",
    ],
)
async def test_arguments_of_another_kind_are_told(app: Running, call: str) -> None:
    text = await refusal_of(app, f"import json, skills\nx = json.loads('[1]')\n{call}")

    assert "not list" in text or "not bool" in text


async def test_who_looks_for_a_skill_in_other_ways_is_told_how(app: Running, project: Path) -> None:
    put(project, "shout", SHOUT)

    text = await refusal_of(app, "import skills\ngetattr(skills, 'shout')('a')")

    assert "Hint: write `from skills import <name>`" in text


async def test_a_function_that_needs_variables_of_the_run_is_not_saved(app: Running) -> None:
    text = await refusal_of(
        app,
        "import null, skills\nrows = null.echo(value=[1])\n"
        'def f():\n    """Doc."""\n    return rows\nskills.save("f", "f", "A test")',
    )

    assert "uses 'rows'" in text
    assert "parameter" in text


async def test_a_skill_is_found_by_what_it_does_beside_tools(app: Running, project: Path) -> None:
    put(project, "weekly/mail-digest", 'def mail_digest(days: int = 7):\n    """Doc text."""',
        "Summarize unread messages of the inbox")  # fmt: skip

    found = await value_of(app, "import tools\ntools.search('summarize my unread inbox messages')")
    described = await value_of(app, "import tools\ntools.describe('skills.weekly.mail_digest')")
    alone = await value_of(app, "import skills\nskills.search('inbox messages')")

    line = "skills.weekly.mail_digest(days: int = 7): Summarize unread messages of the inbox"
    usage = "from skills.weekly import mail_digest"
    assert str(found).split("\n")[0] == f"{line}  [{usage}]"
    assert described == f"{usage}\n{line}\nDoc text."
    assert str(alone).split("\n") == [f"{line}  [{usage}]"]


async def test_a_broken_folder_is_named(app: Running, project: Path) -> None:
    put(project, "broken", "x = 1")

    servers = await value_of(app, "import tools\ntools.servers()")
    found = await value_of(app, "import skills\nskills.search('anything')")

    assert "skill broken: not usable: skill.py has no function 'broken'" in str(servers)
    assert "(not usable: broken: skill.py has no function" in str(found)


async def test_a_deleted_skill_is_gone_and_can_be_brought_back(app: Running, project: Path) -> None:
    folder = put(project, "shout", SHOUT)
    reply = await value_of(app, "import skills\nskills.delete('shout')")

    assert "rollback shout" in str(reply)
    assert not folder.exists()
    assert "no skill 'shout'" in await refusal_of(app, "from skills import shout")

    app.app.library.rollback("shout")
    assert await value_of(app, "from skills import shout\nshout('a')") == ["A!"]


async def test_what_was_edited_by_hand_is_used_at_once_and_is_a_version(
    app: Running, project: Path
) -> None:
    name = f"by_hand_{app.app.config.settings.sandbox}"
    source = f'def {name}():\n    """Doc."""\n    return 1'
    put(project, name.replace("_", "-"), source)
    assert await value_of(app, f"from skills import {name}\n{name}()") == 1
    put(project, name.replace("_", "-"), source.replace("1", "2"))
    assert await value_of(app, f"from skills import {name}\n{name}()") == 2

    versions = app.app.library.versions(name)

    assert [(each.number, each.how) for each in versions] == [(1, "edited"), (2, "edited")]
    assert "-    return 1\n+    return 2" in app.app.library.diff(name)


@pytest.mark.skipif(missing_walls() is not None, reason=str(missing_walls()))
async def test_a_skill_that_needs_cpython_takes_the_run_there(project: Path) -> None:
    source = 'import statistics\ndef middle(row):\n    """Mean."""\n    return statistics.mean(row)'
    async with opened(project, NULL) as app:
        reply = await value_of(app, f"import skills\nskills.save('middle', {source!r}, 'Mean')")
        result = await app.run("from skills import middle\nmiddle([1, 3])")

    assert "It runs on CPython" in str(reply)
    assert (result.tier, result.value) == ("cpython", 2)


async def test_without_cpython_such_a_skill_says_what_it_lacks(project: Path) -> None:
    put(project, "counts", 'def counts():\n    """Count."""\n    yield 1')
    async with opened(project, NULL, sandbox="monty") as app:
        text = await refusal_of(app, "from skills import counts\ncounts()")

    assert "The skill 'counts', line 3: yield (generators) is not supported" in text


async def test_the_example_group_works_when_it_is_dropped_in(app: Running, project: Path) -> None:
    shutil.copytree(
        ROOT / "examples" / "skills", project / ".toolfold" / "skills", dirs_exist_ok=True
    )
    await value_of(
        app,
        "import graph\n"
        "graph.create_entities([{'name': name, 'entityType': 'person', 'observations': ['codes']} "
        "for name in ('Ada', 'Bob')])\n"
        "graph.create_relations([{'from': 'Ada', 'to': 'Bob', 'relationType': 'knows'}])",
    )

    code = "from skills.memory import backup_all_entities\nbackup_all_entities()"
    first, second = await value_of(app, code), await value_of(app, code)
    kept = await value_of(app, "import memory\nmemory.search_by_tag('graph-backup').total")

    assert first == second
    assert isinstance(first, dict)
    assert (first["entities"], first["relations"], kept) == (2, 1, 2)


async def outcome_of_testing(app: Running, name: str) -> str:
    parts = app.app
    tests = SkillTests(parts.library, parts.catalog, parts.tiers, parts.config.settings.limits)
    return describe_test(await tests.test(name), parts.library.find(name))


async def test_a_skill_is_tested_against_what_was_recorded_without_its_server(
    project: Path,
) -> None:
    put(project, "shout", SHOUT)
    run = (
        "from skills import shout\nimport memory\nn = memory.store('a note')\nprint(shout('a', 2))"
    )
    async with opened(project, NULL) as app:
        await value_of(app, run)
    async with opened(project, {}) as app:
        same = await outcome_of_testing(app, "shout")
        put(project, "shout", SHOUT.replace("upper()", "lower()"))
        other_output = await outcome_of_testing(app, "shout")
        put(project, "shout", SHOUT.replace("value=text", "value=text + '?'"))
        other_call = await outcome_of_testing(app, "shout")
        put(project, "shout", SHOUT.replace("range(times)", "range(1)"))
        fewer = await outcome_of_testing(app, "shout")

    assert same == "shout: passed (3 recorded calls)"
    assert "the output is another" in other_output
    assert "-['A!', 'A!']" in other_output.replace("    ", "")
    assert "the skill has changed since" in other_output
    assert "call 2 is null.echo(value='a?'); recorded was null.echo(value='a')" in other_call
    assert "1 recorded call not made: null.echo" in fewer


async def test_what_is_too_large_is_not_recorded(project: Path) -> None:
    put(project, "huge", SHOUT.replace("def shout", "def huge"))
    async with opened(project, NULL) as app:
        await value_of(app, "from skills import huge\nlen(huge('a' * 300_000))")
        library = app.app.library
        assert library.skill_store.recording(library.root_of(library.find("huge")), "huge") is None


async def test_a_line_of_skill_py_may_begin_inside_a_text(app: Running, project: Path) -> None:
    put(project, "poem", 'def poem():\n    """Poem."""\n    return """a\n  b\nc"""')

    assert await value_of(app, "from skills import poem\npoem()") == "a\n  b\nc"
