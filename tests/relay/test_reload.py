"""Files that change while clients are connected: nothing needs a restart."""

import pytest
from relay.conftest import User
from relay.peer import LEGACY, MODERN, wait_until

pytestmark = pytest.mark.timeout(180)

SERVERS = "import tools; print(tools.servers())"


@pytest.mark.parametrize("era", [MODERN, LEGACY])
def test_servers_come_and_go_and_variables_stay(user: User, era: str) -> None:
    peer = user.connect(era=era)
    if era == LEGACY:
        peer.initialize()
    peer.run("kept = 41")
    assert "second:" not in peer.run(SERVERS)

    user.configure(world=user.world(), second=user.world())
    wait_until(lambda: "second:" in peer.run(SERVERS), "the added server is there")
    assert peer.run("kept + 1") == "42"

    user.configure(world=user.world())
    wait_until(lambda: "second:" not in peer.run(SERVERS), "the removed server is gone")


def test_a_broken_edit_keeps_the_last_good_state(user: User) -> None:
    peer = user.connect()
    assert "world:" in peer.run(SERVERS)
    (user.home / "config" / "mcp.json").write_text('{"mcpServers": {')
    assert "world:" in peer.run("import time; time.sleep(1)\n" + SERVERS)
    assert "world:" in peer.run(SERVERS)

    user.configure(other=user.world())
    wait_until(lambda: "other:" in peer.run(SERVERS), "the mended file counts")
    assert "world:" not in peer.run(SERVERS)


def test_a_run_under_way_keeps_what_it_began_with(user: User) -> None:
    peer = user.connect()
    peer.run("1")
    code = "import time, world; time.sleep(2); print('still', len(str(world.where())))"
    under_way = peer.begin(code)
    user.configure(other=user.world())
    assert peer.answer_to(under_way)["result"]["content"][0]["text"].startswith("still ")
    wait_until(lambda: "other:" in peer.run(SERVERS), "the next run has the new server")
