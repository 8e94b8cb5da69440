import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from postgres_server import database_url

from toolfold.errors import StoreError
from toolfold.privacy import placeholder_table
from toolfold.privacy.keys import Seal
from toolfold.privacy.store import VaultStore
from toolfold.storage.secrets import Keyring, find_keyring

SECRET = "ada.of.the.vault@example.org"


class FakeKeyring:
    """A keyring in memory, which may refuse to work or forget."""

    def __init__(self, *, works: bool = True, forgets: bool = False) -> None:
        self.kept: dict[str, str] = {}
        self._works = works
        self._forgets = forgets

    def get(self, name: str) -> str | None:
        if not self._works:
            raise StoreError("locked")
        return self.kept.get(name)

    def put(self, name: str, value: str) -> None:
        if not self._works:
            raise StoreError("locked")
        if not self._forgets:
            self.kept[name] = value


class VaultPlace(NamedTuple):
    """Where vaults and their key are; the vaults in a PostgreSQL if there is an address."""

    directory: Path
    url: str


def opened(
    place: Path | VaultPlace, *, keyring: Keyring | None = None, now: float = 0.0
) -> VaultStore:
    directory, url = place if isinstance(place, VaultPlace) else (place, "")
    store = VaultStore(directory, database_url=url, keyring=keyring, clock=lambda: now)
    store.open()
    return store


@pytest.fixture
def either(tmp_path: Path, either_url: str) -> VaultPlace:
    return VaultPlace(tmp_path / "privacy", either_url)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "privacy"


def test_a_vault_comes_back_as_it_was(either: VaultPlace) -> None:
    with closing(opened(either)) as store:
        concealed = store.vault("a").conceal([SECRET, {"phone": 442079460958}])
    with closing(opened(either)) as store:
        vault = store.vault("a")

        assert vault.reveal(concealed).value == [SECRET, {"phone": 442079460958}]
        assert vault.conceal(["bob@example.org", SECRET]) == ["[EMAIL_2]", "[EMAIL_1]"]


def test_scopes_know_nothing_of_each_other(either: VaultPlace) -> None:
    with closing(opened(either)) as store:
        store.vault("a").conceal(SECRET)
        other = store.vault("b")

        assert other.reveal("[EMAIL_1]").unknown == ("[EMAIL_1]",)
        assert other.conceal("bob@example.org") == "[EMAIL_1]"


def test_nothing_on_the_disk_says_what_is_concealed_and_only_the_user_reads_it(
    place: Path,
) -> None:
    with closing(opened(place)) as store:
        store.vault("project-of-ada").conceal([SECRET, {"street": "12 Hidden Lane"}])
        files = [file for file in place.iterdir() if file.is_file()]
        content = b"".join(file.read_bytes() for file in files)
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in files}

    for hidden in (b"ada.of.the.vault", b"Hidden Lane", b"EMAIL", b"project-of-ada"):
        assert hidden not in content
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    del modes["vaults.db.lock"]
    assert set(modes) == {"vaults.db", "vaults.db-shm", "vaults.db-wal", "vaults.key"}
    assert set(modes.values()) == {0o600}


def test_what_was_acknowledged_survives_being_killed(place: Path) -> None:
    script = Path(__file__).with_name("vault_files.py")
    command = [sys.executable, str(script), str(place), "user", "100000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = [process.stdout.readline().split() for _ in range(40)]
        process.kill()
        told += [line.split() for line in process.stdout if line.endswith("]\n")]
    with closing(opened(place)) as store:
        vault = store.vault("session-1")

        assert len(told) >= 40
        for address, placeholder in told:
            assert vault.reveal(placeholder).value == address


def test_processes_that_share_a_vault_never_give_a_number_twice(place: Path) -> None:
    script = Path(__file__).with_name("vault_files.py")
    processes = [
        subprocess.Popen(
            [sys.executable, str(script), str(place), name, "60"], stdout=subprocess.PIPE, text=True
        )
        for name in ("left", "right", "user")
    ]
    told = [line.split() for each in processes for line in each.communicate()[0].splitlines()]

    assert [each.returncode for each in processes] == [0, 0, 0]
    assert len({placeholder for _, placeholder in told}) == len(told) == 180
    with closing(opened(place)) as store:
        vault = store.vault("session-1")
        assert all(vault.reveal(placeholder).value == address for address, placeholder in told)


def test_what_another_process_concealed_is_revealed_here(either: VaultPlace) -> None:
    with closing(opened(either)) as here, closing(opened(either)) as there:
        mine, theirs = here.vault("a"), there.vault("a")
        theirs.conceal(SECRET)

        assert mine.reveal("[EMAIL_1]").value == SECRET
        assert mine.conceal("bob@example.org") == "[EMAIL_2]"


def test_a_forgotten_vault_is_gone_and_its_numbers_are_not_given_again(either: VaultPlace) -> None:
    with closing(opened(either)) as store:
        old = store.vault("a")
        old.conceal(SECRET)
        store.forget("a")
        new = store.vault("a")

        assert new.reveal("[EMAIL_1]").unknown == ("[EMAIL_1]",)
        assert new.conceal("bob@example.org") == f"[EMAIL_{placeholder_table.MAX_VALUES + 1}]"
        with pytest.raises(StoreError, match="forgotten"):
            old.conceal("cyd@example.org")


def test_what_was_not_used_for_long_is_forgotten(either: VaultPlace) -> None:
    with closing(opened(either, now=100)) as store:
        store.vault("old").conceal(SECRET)
    with closing(opened(either, now=200)) as store:
        store.vault("new").conceal(SECRET)

        assert store.forget_unused(since=150) == 1
        assert store.forget_unused(since=150) == 0
        assert store.vault("old").reveal("[EMAIL_1]").unknown == ("[EMAIL_1]",)
        assert store.vault("new").reveal("[EMAIL_1]").value == SECRET


def changed_byte(connection: sqlite3.Connection) -> None:
    [sealed] = connection.execute("SELECT sealed FROM pages WHERE number = 1").fetchone()
    changed = sealed[:20] + bytes([sealed[20] ^ 1]) + sealed[21:]
    connection.execute("UPDATE pages SET sealed = ? WHERE number = 1", (changed,))


def moved_page(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE pages SET number = number + 7")


def swapped_scope(connection: sqlite3.Connection) -> None:
    connection.execute(
        "UPDATE pages SET scope = (SELECT id FROM scopes WHERE id NOT IN (SELECT scope FROM pages))"
    )


@pytest.mark.parametrize("change", [changed_byte, moved_page, swapped_scope])
def test_a_page_that_somebody_changed_is_not_believed(
    place: Path, change: Callable[[sqlite3.Connection], None]
) -> None:
    with closing(opened(place)) as store:
        store.vault("a").conceal(SECRET)
        store.vault("b")
    with closing(sqlite3.connect(place / "vaults.db", isolation_level=None)) as connection:
        change(connection)
        [sealed_for] = connection.execute("SELECT scope FROM pages").fetchone()
    with closing(opened(place)) as store:
        # Whichever of the two the page stands under now.
        scope = "a" if Seal(store._master, "a").id == sealed_for else "b"
        with pytest.raises(StoreError, match="changed"):
            store.vault(scope)


def test_the_key_is_in_the_keyring_where_one_works(place: Path) -> None:
    keyring = FakeKeyring()
    with closing(opened(place, keyring=keyring)) as store:
        store.vault("a").conceal(SECRET)

    assert not (place / "vaults.key").exists()
    assert len(keyring.kept) == 1
    with closing(opened(place, keyring=keyring)) as store:
        assert store.vault("a").reveal("[EMAIL_1]").value == SECRET


@pytest.mark.parametrize(
    "keyring",
    [None, FakeKeyring(works=False), FakeKeyring(forgets=True)],
    ids=["none", "locked", "forgetful"],
)
def test_the_key_is_in_a_file_where_no_keyring_works(
    place: Path, keyring: FakeKeyring | None
) -> None:
    with closing(opened(place, keyring=keyring)) as store:
        store.vault("a").conceal(SECRET)
    assert stat.S_IMODE((place / "vaults.key").stat().st_mode) == 0o600
    with closing(opened(place)) as store:
        assert store.vault("a").reveal("[EMAIL_1]").value == SECRET


def test_a_keyring_that_is_away_is_not_replaced_by_another_key(place: Path) -> None:
    with closing(opened(place, keyring=FakeKeyring())) as store:
        store.vault("a").conceal(SECRET)

    with pytest.raises(StoreError, match="keyring"):
        opened(place)
    with pytest.raises(StoreError, match="locked"):
        opened(place, keyring=FakeKeyring(works=False))
    with pytest.raises(StoreError, match="is missing"):
        opened(place, keyring=FakeKeyring())
    assert not (place / "vaults.key").exists()


def test_another_key_is_refused(place: Path) -> None:
    opened(place).close()
    (place / "vaults.key").write_text("ab" * 32)

    with pytest.raises(StoreError, match="not the one"):
        opened(place)
    (place / "vaults.key").write_text("nonsense")
    with pytest.raises(StoreError, match="not a key"):
        opened(place)
    (place / "vaults.key").unlink()
    with pytest.raises(StoreError, match="is missing"):
        opened(place)


def test_a_key_that_others_could_read_is_closed_to_them(place: Path) -> None:
    opened(place).close()
    (place / "vaults.key").chmod(0o644)
    opened(place).close()

    assert stat.S_IMODE((place / "vaults.key").stat().st_mode) == 0o600


def test_a_damaged_file_stays_and_is_named_with_what_to_do(place: Path) -> None:
    opened(place).close()
    for file in place.glob("vaults.db*"):
        file.unlink()
    (place / "vaults.db").write_bytes(b"not a database" * 1_000)

    with pytest.raises(StoreError, match="backup"):
        opened(place)
    assert (place / "vaults.db").read_bytes().startswith(b"not a database")


def test_a_file_of_another_program_or_of_a_newer_toolfold_is_left_alone(place: Path) -> None:
    opened(place).close()
    with closing(sqlite3.connect(place / "vaults.db")) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="newer"):
        opened(place)
    with closing(sqlite3.connect(place / "vaults.db")) as connection:
        connection.execute("PRAGMA application_id = 1")
    with pytest.raises(StoreError, match="another program"):
        opened(place)


def test_values_that_could_not_be_kept_are_not_shown_either(place: Path) -> None:
    with closing(opened(place)) as store:
        vault = store.vault("a")
        store.tables.write(lambda tables: tables.execute("DROP TABLE pages"))

        with pytest.raises(StoreError, match="pages"):
            vault.conceal(SECRET)
        with pytest.raises(StoreError, match="pages"):
            vault.conceal(SECRET)


def test_replicas_share_vaults_where_they_have_one_key(tmp_path: Path) -> None:
    url = database_url(tmp_path)
    with closing(opened(VaultPlace(tmp_path / "a", url))) as store:
        store.vault("a").conceal(SECRET)
    (tmp_path / "b").mkdir()

    for key in (None, "ab" * 32):
        if key is not None:
            (tmp_path / "b" / "vaults.key").write_text(key)
        with pytest.raises(StoreError, match=r"b/vaults\.key does not hold"):
            opened(VaultPlace(tmp_path / "b", url))
    shutil.copy(tmp_path / "a" / "vaults.key", tmp_path / "b" / "vaults.key")
    with closing(opened(VaultPlace(tmp_path / "b", url))) as store:
        assert store.vault("a").reveal("[EMAIL_1]").value == SECRET
        assert store.vault("a").conceal("bob@example.org") == "[EMAIL_2]"


def test_a_closed_store_says_so(place: Path) -> None:
    store = opened(place)
    vault = store.vault("a")
    store.close()

    with pytest.raises(StoreError, match="closed"):
        vault.conceal(SECRET)


def test_without_the_package_there_is_no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)

    assert find_keyring() is None


class FakePackage:
    """The package `keyring` with a backend of some priority, which may refuse."""

    def __init__(self, *, priority: float = 5, fault: Exception | None = None) -> None:
        self._kept: dict[tuple[str, str], str] = {}
        self._backend = SimpleNamespace(priority=priority)
        self._fault = fault

    def get_keyring(self) -> SimpleNamespace:
        return self._backend

    def get_password(self, service: str, name: str) -> str | None:
        if self._fault:
            raise self._fault
        return self._kept.get((service, name))

    def set_password(self, service: str, name: str, value: str) -> None:
        self._kept[service, name] = value


def test_the_systems_keyring_is_used_where_its_backend_works(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "keyring", FakePackage())
    with closing(opened(place, keyring=find_keyring())) as store:
        store.vault("a").conceal(SECRET)
    with closing(opened(place, keyring=find_keyring())) as store:
        assert store.vault("a").reveal("[EMAIL_1]").value == SECRET
    assert not (place / "vaults.key").exists()


def test_a_keyring_without_a_backend_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", FakePackage(priority=0))

    assert find_keyring() is None


def test_a_keyring_that_fails_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", FakePackage(fault=RuntimeError("no bus")))
    keyring = find_keyring()

    assert keyring is not None
    with pytest.raises(StoreError, match="no bus"):
        keyring.get("vault")


def test_the_detectors_do_not_load_what_only_the_store_or_a_model_needs() -> None:
    code = (
        "import sys, toolfold.privacy.vault; "
        "print({'cryptography', 'onnxruntime', 'numpy', 'sqlite3'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ),
    )

    assert done.stdout.strip() == "set()"


def test_a_vault_that_is_full_rolls_over_on_the_disk_and_gives_no_number_twice(
    either: VaultPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placeholder_table, "MAX_VALUES", 4)
    given: dict[str, str] = {}
    for _ in range(3):  # starts
        with closing(opened(either)) as store:
            vault = store.vault("a")
            for number in range(11):
                address = f"ada{number}@example.org"
                placeholder = str(vault.conceal(address))
                assert given.setdefault(placeholder, address) == address
    with closing(opened(either)) as store:
        again = store.vault("a")

        assert 0 < len(again) <= 4
        assert again.reveal(placeholder).value == "ada10@example.org"
        assert again.reveal("[EMAIL_1]").unknown == ("[EMAIL_1]",)


def test_a_vault_whose_roll_over_does_not_reach_the_disk_is_as_before(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placeholder_table, "MAX_VALUES", 4)
    with closing(opened(place)) as store:
        vault = store.vault("a")
        kept = vault.conceal([f"ada{number}@example.org" for number in range(4)])
        with pytest.raises(StoreError):
            vault.conceal([f"bob{number}@example.org" for number in range(5)])

        assert vault.reveal(kept).unknown == ()
        assert vault.conceal("ada3@example.org") == kept[3]
