import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import ROOT, conformance

HERE = Path(__file__).parent
BASELINE = HERE / "client-baseline.yml"
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def client_command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The command of our client, kept warm: the suite starts dozens of them at once."""
    directory = tmp_path_factory.mktemp("conformance")
    socket = directory / "warm"
    environ = {**os.environ, "HOME": str(directory), "TOOLFOLD_HOME": str(directory / "home")}
    with (directory / "stderr").open("w") as stderr:
        warm = subprocess.Popen(
            [sys.executable, str(HERE / "warm.py"), str(socket)],
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environ,
            start_new_session=True,
        )
        assert warm.stdout is not None
        assert warm.stdout.readline() == b"listening\n", (directory / "stderr").read_text()
        yield f"{sys.executable} -S {HERE / 'ask.py'} {socket}"
        os.killpg(warm.pid, signal.SIGKILL)
        warm.wait()
        warm.stdout.close()


@pytest.mark.parametrize(
    ("selection", "scenarios"),
    [
        (["--requirements", "2026-07-28"], 39),
        (["--requirements", "2025-11-25"], 25),
        (["--suite", "backcompat"], 2),
    ],
    ids=["2026-07-28", "2025-11-25", "backcompat"],
)
def test_our_client_passes_what_the_protocol_asks_of_clients(
    client_command: str, selection: list[str], scenarios: int, tmp_path: Path
) -> None:
    baseline = ["--expected-failures", str(BASELINE)] if "--requirements" in selection else []
    options = ["--command", client_command, "--timeout", "120000", "--output-dir", str(tmp_path)]
    suite = subprocess.run(
        conformance("client", *selection, *baseline, *options),
        capture_output=True,
        text=True,
        cwd=ROOT,
    )

    summary = suite.stdout.partition("=== SUITE SUMMARY ===")[2]
    assert suite.returncode == 0, suite.stdout[-6000:] + suite.stderr[-2000:]
    assert len([line for line in summary.splitlines() if line[:2] in {"✓ ", "✗ "}]) == scenarios
