"""The built package: what is in it, and that it works without a clone and without a network."""

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support import ROOT

import toolfold

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("package")]
VERSION = toolfold.__version__
OURS = sorted(
    path.relative_to(ROOT / "src").as_posix()
    for path in (ROOT / "src" / "toolfold").rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
)


def load(path: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with sdist and wheel; the wheel is made of the sdist's content."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    with tarfile.open(folder / f"toolfold-{VERSION}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    source = folder / f"toolfold-{VERSION}"
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    return folder


class Installed:
    """The wheel in an environment of its own, with no file of the clone and no network."""

    def __init__(self, wheel: Path, folder: Path) -> None:
        self.python = folder / "venv" / "bin" / "python"
        self.home = folder / "home"
        self.home.mkdir()
        venv.create(folder / "venv", with_pip=False)
        site = folder / "venv" / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
        # What we depend on is there as the index would give it; the clone itself is not.
        (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
        self.python.with_name("monty").symlink_to(Path(sysconfig.get_path("scripts")) / "monty")

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TOOLFOLD_HOME": str(self.home / "t"),
            "TOOLFOLD_NO_DAEMON": "1",
            "http_proxy": "http://127.0.0.1:9",
            "https_proxy": "http://127.0.0.1:9",
        }
        command = [str(self.python), "-m", "toolfold", *arguments]
        return subprocess.run(
            command,
            cwd=self.home,
            env=environ,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    wheel = built / f"toolfold-{VERSION}-py3-none-any.whl"
    package = Installed(wheel, tmp_path_factory.mktemp("installed"))
    yield package
    package.run("stop", "--now")


def test_the_wheel_holds_the_whole_package_and_nothing_else(built: Path) -> None:
    with zipfile.ZipFile(built / f"toolfold-{VERSION}-py3-none-any.whl") as archive:
        names = sorted(archive.namelist())

    metadata = f"toolfold-{VERSION}.dist-info"
    manual = f"toolfold-{VERSION}.data/data/share/man/man1/toolfold.1"
    assert [name for name in names if not name.startswith(metadata)] == sorted([manual, *OURS])
    assert any(name.endswith(".onnx") for name in names)
    assert "toolfold/assets/o200k_base.tiktoken.gz" in names


def test_building_again_gives_the_same_bytes_and_so_does_the_sdist(
    built: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist"]
    subprocess.run([*command, "-d", str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
    again = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    assert len(again) == 2
    for name, content in again.items():
        assert content == (built / name).read_bytes(), name  # of `built`, the wheel is the sdist's


def test_the_page_of_the_package_has_no_link_that_leads_nowhere(built: Path) -> None:
    with zipfile.ZipFile(built / f"toolfold-{VERSION}-py3-none-any.whl") as archive:
        metadata = archive.read(f"toolfold-{VERSION}.dist-info/METADATA").decode()

    assert "](docs/" not in metadata
    assert "(https://github.com/toolfold/toolfold/blob/main/docs/" in metadata
    assert "Project-URL: Homepage, " in metadata


def test_no_package_is_built_without_its_model(tmp_path: Path) -> None:
    hook = load(ROOT / "hatch_build.py")
    (tmp_path / "whole").write_bytes(b"x")
    (tmp_path / "empty").touch()

    assert hook.missing_assets(tmp_path, ["whole", "empty", "absent"]) == ["empty", "absent"]


def test_the_hook_asks_for_the_files_that_the_program_opens() -> None:
    import tomllib

    from toolfold import embedding, tokens

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    opened = {tokens.VOCABULARY.name, embedding.MODEL.name, embedding.TOKENIZER.name}

    assert set(settings["hooks"]["custom"]["assets"]) == opened


def needed(package: Distribution, extras: frozenset[str] = frozenset()) -> dict[str, int]:
    """Return what an index would give with a package, and how many bytes the files of each take.

    Bytecode is not counted; it comes when a module is first imported.
    """
    sizes: dict[str, int] = {}
    seen = set()
    waiting = [(package, extras)]
    while waiting:
        package, extras = waiting.pop()
        name = canonicalize_name(package.metadata["Name"])
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        files = (Path(str(file.locate())) for file in package.files or [])
        sizes[name] = sum(file.stat().st_size for file in files if is_counted(file))
        for wanted in map(Requirement, package.requires or []):
            marker = wanted.marker
            if not marker or any(marker.evaluate({"extra": each}) for each in ("", *extras)):
                waiting.append((distribution(wanted.name), frozenset(wanted.extras)))
    return sizes


def is_counted(file: Path) -> bool:
    return file.suffix != ".pyc" and file.is_file()


def test_without_extras_less_than_280_mb_are_installed(built: Path) -> None:
    wheel = zipfile.Path(built / f"toolfold-{VERSION}-py3-none-any.whl")
    package = PathDistribution(wheel / f"toolfold-{VERSION}.dist-info")
    sizes = needed(package)
    sizes["toolfold"] = sum(file.file_size for file in wheel.root.infolist())

    assert not {"tokenizers", "huggingface-hub", "hf-xet"} & set(sizes)
    assert "tokenizers" in needed(package, frozenset({"ner"}))
    assert min(sizes[name] for name in ("toolfold", "numpy", "onnxruntime")) > 20_000_000
    assert sum(sizes.values()) < 280_000_000, sorted(sizes.items(), key=lambda each: -each[1])


def test_the_installed_package_runs_code(installed: Installed) -> None:
    done = installed.run("run", "-c", "sum(range(10))")

    assert (done.stdout, done.returncode) == ("45\n", 0)


def test_the_installed_package_remembers_and_finds_by_meaning(installed: Installed) -> None:
    stored = installed.run("memory", "store", "The invoice is due on Friday")
    assert stored.returncode == 0, stored.stderr

    # On a busy machine the model is not loaded in time, and a search goes by words alone.
    found = (installed.run("memory", "search", "when must we pay", "--json") for _ in range(10))
    assert any("invoice is due" in done.stdout for done in found)


def test_the_installed_package_counts_tokens(installed: Installed) -> None:
    done = installed.run("savings")

    assert done.returncode == 0, done.stderr


def test_the_doctor_finds_nothing_wrong_with_the_installed_package(installed: Installed) -> None:
    done = installed.run("doctor")

    assert "FAILED" not in done.stdout
    assert done.returncode == 0, done.stdout + done.stderr
    assert "servers: none is configured" in done.stdout


PARTS = {"o200k_base.tiktoken.gz": "vocabulary", "gte-small-int8.onnx": "model"}


@pytest.mark.parametrize("is_there", [False, True], ids=["missing", "another"])
def test_the_doctor_sees_that_a_file_of_the_package_is_missing_or_another(
    installed: Installed, is_there: bool
) -> None:
    [assets] = installed.python.parents[1].glob("lib/*/site-packages/toolfold/assets")
    contents = {assets / name: (assets / name).read_bytes() for name in PARTS}
    for path, content in contents.items():
        path.unlink()
        if is_there:
            path.write_bytes(content[:-100])
    done = installed.run("doctor")
    for path, content in contents.items():
        path.write_bytes(content)

    for part in PARTS.values():
        [line] = [each for each in done.stdout.splitlines() if f" {part}: " in each]
        assert line.startswith("FAILED")
        assert "reinstall toolfold" in line
    assert done.returncode == 1


def test_the_installed_relay_answers_a_client(installed: Installed) -> None:
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"},
        },
    }
    done = installed.run("mcp", stdin=json.dumps(request) + "\n")

    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "toolfold"
