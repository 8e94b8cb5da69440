"""The examples do what they say, against a real `toolfold serve`."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from http_daemon import Serving, serve_command, serving
from support import ROOT, write_config

EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("examples")
    server = {"command": sys.executable, "args": [str(EXAMPLES / "records_server.py")]}
    config = write_config(folder / "mcp.json", {"records": server})
    with serving(serve_command(config), home=folder / "home") as started:
        yield started


def run_example(name: str, served: Serving, cwd: Path) -> str:
    """Run an example as a user does, and return what it prints."""
    command = [sys.executable, str(EXAMPLES / name), served.root]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def test_lazy_discovery_goes_from_categories_to_one_call(served: Serving, tmp_path: Path) -> None:
    printed = run_example("lazy_discovery.py", served, tmp_path)

    assert "records: 9 tools" in printed
    assert "best fit: records.create_entities" in printed
    assert "entities: array of object, required" in printed
    assert "'name': 'Ada'" in printed


def test_filtering_reads_much_and_returns_little(served: Serving, tmp_path: Path) -> None:
    printed = run_example("filter_locally.py", served, tmp_path)

    figures = re.findall(r"at ([0-9,]+) characters, read ([0-9]+):", printed)
    [(looked_at, read)] = [(int(one.replace(",", "")), int(other)) for one, other in figures]
    assert looked_at > 1000 * read
    assert "[['order-857', 999], ['order-1857', 999], ['order-714', 998]]" in printed


def test_a_job_is_taken_up_where_it_was_left(served: Serving, tmp_path: Path) -> None:
    first, second, third = (run_example("save_and_resume.py", served, tmp_path) for _ in range(3))

    assert "0 of 8" in first
    assert "stopped" in first
    assert "3 of 8" in second
    assert "doing step 4" in second
    assert "6 of 8" in third
    assert third.count("doing") == 2
    assert "all 8 steps are done" in third


def test_a_summary_comes_back_in_place_of_everything(served: Serving, tmp_path: Path) -> None:
    printed = run_example("return_summary.py", served, tmp_path)

    assert "61 calls were made; heard of" in printed
    assert "40 people looked at, 20 of them like tea" in printed


def test_every_example_of_the_client_is_run_here() -> None:
    examples = {path.name for path in EXAMPLES.glob("*.py") if "Client(url)" in path.read_text()}

    assert examples == {
        "lazy_discovery.py", "filter_locally.py", "save_and_resume.py", "return_summary.py",
    }  # fmt: skip
