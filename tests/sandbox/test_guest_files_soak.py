"""The long forms of what fills a workspace."""

from pathlib import Path

import pytest
from guests import Host, run_in, running_sandbox

from toolfold.config.settings import Limits
from toolfold.sandbox.trees import Roots
from toolfold.workspace.usage import Quota
from toolfold.workspace.workspace import Workspace

FILES = "n = 0\ntry:\n    while n < 100_000:\n        open(f'f{n}', 'a').close()\n        n += 1\nexcept OSError as e:\n    print(e)\nn"
BYTES = "n = 0\nx = 'x' * 4_000_000\ntry:\n    while n < 2_500:\n        open(f'f{n}', 'w').write(x)\n        n += 1\nexcept OSError as e:\n    print(e)\nn"


@pytest.mark.soak
@pytest.mark.parametrize("tier", ["monty", "cpython"])
@pytest.mark.parametrize("code", [FILES, BYTES], ids=["100,000 files", "10 GB"])
async def test_a_flood_ends_at_the_quota(tier: str, code: str, tmp_path: Path) -> None:
    quota = Quota.of(Limits())
    workspace = Workspace(tmp_path, quota)
    async with running_sandbox(tier=tier, guest_time_s=120.0, wall_time_s=300.0) as sandbox:
        files = Roots({"workspace": workspace})
        async with sandbox.open({}, frozenset(), files=files) as session:
            outcome = await run_in(session, code, Host())

    assert outcome.failure is None, outcome.failure
    assert "may hold" in outcome.output
    used = Workspace(tmp_path, quota).usage()
    assert used.bytes <= quota.bytes
    assert used.files <= quota.files
    assert used.files - outcome.value in {0, 1}  # type: ignore[operator]  # one may be cut short
