"""Answers and values that are too large for a reply: files, and few words about them."""

import gc
from pathlib import Path
from typing import Any

import pytest
from support import MakeApp, MakeConfig, test_server

from toolfold.entrypoints.http.tenants import in_namespace
from toolfold.journal.reader import read_journal
from toolfold.tokens import count_tokens

BULKY = {"bulky": test_server("bulky")}
COUNT = """
import bulky, workspace
answer = bulky.{tool}(size_bytes={size})
[answer["type"], answer["length"], workspace.count(answer["path"]{at}), answer]
"""
ROW_BYTES = 98


def memory_mb(pid: int | str, key: str = "VmRSS") -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) / 1024
    return 0.0


def forget_peak(pid: int | str) -> None:
    try:
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    except OSError:
        pytest.skip("the peak of memory cannot be measured here")


def workers() -> list[int]:
    """Return the interpreters among our descendants."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        found += map(int, (task / "children").read_text().split())
    return [pid for pid in found if "monty" in Path(f"/proc/{pid}/cmdline").read_text()]


@pytest.mark.parametrize(
    ("tool", "at", "kind"),
    [
        ("rows", "", "list"),
        ("wrapped", ", at='rows'", "dict"),
        ("both", ", at='rows'", "dict"),
        ("structured", ", at='rows'", "dict"),
        ("lines", "", "json lines"),
    ],
)
async def test_a_large_answer_is_a_file_that_code_counts_through(
    tool: str, at: str, kind: str, running: MakeApp, home: Path
) -> None:
    async with running(BULKY, limits__result_bytes=200_000) as toolfold:
        result = await toolfold.run(COUNT.format(tool=tool, size=600_000, at=at))

    assert result.error is None, result.text
    found: Any = result.value
    assert found[0] == kind
    assert found[2] == 600_000 // ROW_BYTES
    assert found[3]["path"].startswith(f"/workspace/results/{result.run_id}-bulky.{tool}-1.")
    assert count_tokens(result.text) < 400
    assert len(answers_of(home, result.run_id)) == 2
    assert max(answers_of(home, result.run_id)) < 1_000


def answers_of(home: Path, run_id: str) -> list[int]:
    """Return how long each answer of a run is in the journal."""
    run = read_journal(home / "data" / "runs.db", lambda each: each.find(run_id))
    assert run is not None
    return [call.answer.size_bytes for call in run.calls if call.answer]


async def _counted(running: MakeApp, size: int) -> None:
    async with running(BULKY) as toolfold:
        warm = await toolfold.run(COUNT.format(tool="rows", size=6_000_000, at=""))
        assert warm.error is None, warm.text
        gc.collect()
        before = memory_mb("self")
        forget_peak("self")
        for worker in workers():
            forget_peak(worker)
        result = await toolfold.run(COUNT.format(tool="both", size=size, at=", at='rows'"))
        peak, worker_peak = memory_mb("self", "VmHWM"), [memory_mb(w, "VmHWM") for w in workers()]
        gc.collect()
        after = memory_mb("self")

    told = ", ".join(f"{each:.0f}" for each in worker_peak)
    print(
        f"\n{size / 1e6:.0f} MB answer: daemon {before:.0f} MB, peak {peak:.0f}, "
        f"after {after:.0f}; workers peak {told} MB; reply {count_tokens(result.text)} tokens"
    )
    assert result.error is None, result.text
    assert result.value[2] == size // ROW_BYTES  # type: ignore[index]
    assert count_tokens(result.text) < 400
    assert after < before + 15
    assert max(worker_peak) < 100
    # The file is mapped while it is read, and its pages count while they are there.
    assert peak < before + 60 + 2.6 * size / (1 << 20)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="measured by /proc")
async def test_an_answer_of_12_mb_takes_little_memory_and_gives_it_back(running: MakeApp) -> None:
    await _counted(running, 12_000_000)


@pytest.mark.soak
async def test_an_answer_of_50_mb_takes_little_memory_and_gives_it_back(running: MakeApp) -> None:
    await _counted(running, 50_000_000)


async def test_text_that_is_no_json_is_described_and_read_in_slices(running: MakeApp) -> None:
    code = (
        "import bulky, workspace\nanswer = bulky.words(size_bytes=300_000)\n"
        "[answer['type'], answer['bytes'], workspace.read(answer['path'], 5, 9)]"
    )
    async with running(BULKY, limits__result_bytes=100_000) as toolfold:
        result = await toolfold.run(code)

    assert result.value == ["text", 300_000, "word word"], result.text


async def test_a_large_failure_is_a_failure_in_the_servers_words(running: MakeApp) -> None:
    async with running(BULKY, limits__result_bytes=100_000) as toolfold:
        result = await toolfold.run("import bulky\nbulky.failing(size_bytes=300_000)")

    assert result.error is not None
    assert "bulky.failing failed: It went wrong." in result.error.message
    assert len(result.text) < 6_000


async def test_an_answer_beyond_the_upper_limit_is_refused(running: MakeApp) -> None:
    limits = {"limits__result_bytes": 100_000, "limits__large_result_bytes": 200_000}
    async with running(BULKY, **limits) as toolfold:
        result = await toolfold.run("import bulky\nbulky.words(size_bytes=300_000)")
        again = await toolfold.run("import bulky\nlen(bulky.words(size_bytes=500))")

    assert result.error is not None
    assert "at most 200,000 are taken" in result.error.message
    assert again.value == 500


async def test_an_answer_for_which_there_is_no_room_says_so_and_leaves_nothing(
    running: MakeApp,
) -> None:
    limits = {"limits__result_bytes": 100_000, "limits__workspace_bytes": 250_000}
    async with running(BULKY, **limits) as toolfold:
        await toolfold.run("open('mine', 'w').write('x' * 100)")
        result = await toolfold.run("import bulky\nbulky.words(size_bytes=300_000)")
        usage = toolfold.app.workspace.usage()

    assert result.error is not None
    assert "was called, and its answer of" in result.error.message
    assert "limited to 250,000 bytes" in result.error.message
    assert usage.bytes == 100


async def test_the_oldest_results_make_room_and_files_of_the_user_do_not(running: MakeApp) -> None:
    limits = {"limits__result_bytes": 100_000, "limits__workspace_bytes": 700_000}
    async with running(BULKY, **limits) as toolfold:
        await toolfold.run("open('mine', 'w').write('x' * 100)")
        ids = []
        for _ in range(4):
            result = await toolfold.run("import bulky\nbulky.words(size_bytes=300_000)['path']")
            assert result.error is None, result.text
            ids.append(result.run_id)
        left = sorted(path for path, _ in toolfold.app.workspace.files())

    kept = [f"results/{each}-bulky.words-1.txt" for each in ids[-2:]]
    assert left == ["mine", *sorted(kept)]


async def test_a_long_value_is_a_preview_and_a_handle(running: MakeApp) -> None:
    async with running({}) as toolfold:
        result = await toolfold.run("'start ' + 'x' * 575_000 + ' end'")
        path = f"/workspace/results/{result.run_id}-value.txt"
        read = await toolfold.run(f"text = open('{path}').read()\n[len(text), text[:5], text[-3:]]")

    assert result.text.startswith("start xxx")
    assert "xxx end\nThe value has 575,010 characters: text of 1 line." in result.text
    assert f'Read it: open("{path}").read()[:4000]' in result.text
    assert len(result.text) < 5_000
    assert read.value == [575_010, "start", "end"]


async def test_a_long_list_tells_its_shape_and_the_line_that_reads_it_works(
    running: MakeApp,
) -> None:
    async with running({}) as toolfold:
        result = await toolfold.run("[{'id': n, 'name': 'n' * 30} for n in range(5_000)]")
        line = result.text.rpartition("Read it: ")[2]
        read = await toolfold.run(line.replace("; ", "\n"))

    assert 'list of 5,000 items, keys ["id", "name"]' in result.text
    assert 'the first {"id": 0,' in result.text
    assert [each["id"] for each in read.value] == list(range(20))  # type: ignore[union-attr, index, call-overload]


async def test_what_was_printed_is_saved_whole_even_when_the_run_fails(running: MakeApp) -> None:
    async with running({}) as toolfold:
        result = await toolfold.run("for n in range(3_000):\n    print('line', n)\n1 / 0")
        saved = toolfold.app.workspace.read(f"results/{result.run_id}-printed.txt")

    assert "ZeroDivisionError" in result.text
    assert "What was printed has" in result.text
    assert saved.decode().splitlines() == [f"line {n}" for n in range(3_000)]


async def test_a_full_workspace_costs_the_handle_and_not_the_preview(running: MakeApp) -> None:
    async with running({}, limits__workspace_bytes=1_000) as toolfold:
        result = await toolfold.run("'start ' + 'x' * 20_000 + ' end'")

    assert result.text.startswith("start xxx")
    assert "It could not be saved: The workspace is limited to 1,000 bytes" in result.text


async def test_a_short_reply_makes_no_file(running: MakeApp) -> None:
    async with running({}) as toolfold:
        await toolfold.run("print('x' * 3_000)\n'y' * 3_000")
        assert not toolfold.app.workspace.root.exists()


async def test_an_image_is_a_file_that_a_later_run_can_show(running: MakeApp) -> None:
    async with running(BULKY) as toolfold:
        first = await toolfold.run("import bulky\np = bulky.picture()\nshow(p)\np")
        reference: Any = first.value
        later = await toolfold.run(f"show({reference['path']!r})")
        wrong = await toolfold.run("open('a.txt', 'w').write('x')\nshow('/workspace/a.txt')")

    assert reference["mime_type"] == "image/png"
    assert reference["bytes"] == 72
    assert first.images == later.images
    assert len(first.images) == 1
    assert wrong.error is not None
    assert "show() takes an image" in wrong.error.message


async def test_projects_have_workspaces_of_their_own(running: MakeApp, home: Path) -> None:
    async with running({}) as toolfold:
        await toolfold.run("open('a', 'w').write('x')")

    assert (home / "data" / "projects" / "default" / "workspace" / "a").read_text() == "x"
    assert (home / "data" / "projects" / "default").stat().st_mode & 0o777 == 0o700


async def test_code_that_has_written_a_file_is_not_run_once_more(running: MakeApp) -> None:
    code = "f = open('log', 'a')\nf.write('x')\n[].no_such_method()"
    async with running({}) as toolfold:
        result = await toolfold.run(code)
        written = toolfold.app.workspace.read("log")

    assert result.error is not None
    assert result.tier == "monty"
    assert written == b"x"


async def test_namespaces_of_keys_have_workspaces_of_their_own(make_config: MakeConfig) -> None:
    config = make_config({})
    names = ["team", "team/../other", "..", "ä", "team "]
    places = {in_namespace(config, name).workspace for name in names} | {config.workspace}

    assert len(places) == len(names) + 1
    for place in places - {config.workspace}:
        assert place.parent == config.directories.data / "namespaces"
        assert ".." not in place.parts
