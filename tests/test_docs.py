import dataclasses
import re

import pytest
from support import ROOT

from toolfold.config.servers import ServerOptions
from toolfold.config.settings import HookSettings, Limits, MemorySettings, PrivacySettings, Settings
from toolfold.entrypoints.cli import make_parser
from toolfold.execution.analysis.plan import make_plan


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def commands() -> list[str]:
    """Return those that `--help` lists."""
    [subcommands] = [a for a in make_parser()._actions if hasattr(a, "choices") and a.choices]
    return [shown.dest for shown in subcommands._choices_actions]


@pytest.mark.parametrize("command", commands())
def test_every_command_stands_in_the_documents(command: str) -> None:
    assert f"\n## toolfold {command}\n" in read("docs/commands.md")


@pytest.mark.parametrize(
    "kind", [Limits, ServerOptions, Settings, MemorySettings, HookSettings, PrivacySettings]
)
def test_every_setting_is_documented_with_its_default(kind: type) -> None:
    rows = dict(
        re.findall(r"^\| `(\w+)` \| ([^|]+) \| \S", read("docs/configuration.md"), re.MULTILINE)
    )
    words = {None: "none", True: "true", False: "false"}
    for setting in dataclasses.fields(kind):
        default = setting.default
        if default is dataclasses.MISSING:
            continue
        shown = words[default] if default is None or isinstance(default, bool) else default
        shown = f'"{shown}"' if isinstance(default, str) else shown
        expected = f"{shown:g}" if isinstance(shown, float) else str(shown)
        assert rows.get(setting.name) == expected, setting.name


@pytest.mark.parametrize("page", ["README.md", "docs/code.md"])
def test_the_code_in_the_documents_is_code_that_could_run(page: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", read(page), re.DOTALL)

    assert blocks
    for block in blocks:
        assert make_plan(block, max_bytes=100_000).unsupported == ()


def test_links_between_documents_lead_somewhere() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "bench" / "README.md"]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_way_around_the_border_has_its_tests() -> None:
    rows = re.findall(r"^\| (\d+) \| [^|]+ \| ([^|]+) \|$", read("docs/security.md"), re.MULTILINE)

    assert [int(number) for number, _ in rows] == list(range(1, 14))
    for _, shown in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", shown)
        assert len(named) == shown.count("`") // 2 > 0
        for file, test in named:
            assert f"def {test}(" in read(file), f"{file} has no {test}"


def test_the_calculator_loads_nothing_from_elsewhere() -> None:
    page = read("docs/calculator.html")

    assert "default-src 'none'" in page
    assert not re.search(r"https?://|//\w|<link|<img|<iframe|\bimport\b|fetch\(|XMLHttp", page)
    inputs = set(re.findall(r'<input id="(\w+)"', page))
    assert inputs == set(re.findall(r'number\("(\w+)"\)', page))
