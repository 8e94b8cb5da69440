"""Real specifications: every operation has a stub that type-checks and a request that is valid."""

import ast
import socket
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from api_samples import Judge, NoSample, arguments_for, sample
from api_server import ServedApi, serving_apis
from support import SHARED_DATA, MakeApp

from toolfold.catalog.known_tools import KnownTools
from toolfold.catalog.openapi.model import ApiOperation
from toolfold.catalog.openapi.operations import read_api
from toolfold.catalog.openapi.request import make_request
from toolfold.catalog.openapi.text import parse_text
from toolfold.catalog.stubs import render_stub
from toolfold.errors import BadCall

ARCHIVE = SHARED_DATA / "openapi.tar.gz"
# Of all sizes but the largest, which differ in all that specifications can differ in.
VARIED = 15
SERVED = 20
# Requests that do not validate: alternatives of which a `oneOf` lets no sensible body fit only one,
# and specifications that nothing fits. Of all 41,042 there are 26.
MAX_FAULTY_SHARE = 0.0008
CHECKER = """
from typing import Generic, TypeVar
T = TypeVar("T")
U = TypeVar("U")
class Intersection(Generic[T, U]): ...
"""


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    if not ARCHIVE.exists():
        pytest.skip(f"The specifications {ARCHIVE} are not on this machine.")
    directory = tmp_path_factory.mktemp("specs")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(directory, filter="data")
    return sorted(directory.rglob("*.yaml"), key=lambda path: (path.stat().st_size, path.name))


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.getaddrinfo

    def only_here(host: Any, *others: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        assert name in ("127.0.0.1", "localhost", None), f"{name} was looked up"
        return real(host, *others, **options)

    monkeypatch.setattr(socket, "getaddrinfo", only_here)


def faults_of(path: Path) -> tuple[int, list[str]]:
    """Return how many requests were made for the operations of a file, and what is wrong."""
    document: Any = parse_text(path.read_bytes())
    api = read_api(document, variables={})
    judge = Judge(document)
    tools = {tool.name: tool for tool in api.tools}
    count, faults = 0, []
    for operation in api.operations.values():
        schema = tools[operation.name].input_schema
        for full in (False, True):
            count += 1
            found = first_fault(operation, judge, arguments_for(schema, full=full))
            where = f"{path.name} {operation.method} {operation.path}"
            faults += [f"{where}: {found}"] if found else []
    return count, faults


def first_fault(operation: ApiOperation, judge: Judge, candidates: Iterator[Any]) -> str:
    """Return "" if a request of those arguments is valid: overlapping alternatives are not."""
    first = "no arguments fit"
    for number, arguments in enumerate(candidates):
        try:
            request = make_request(operation, arguments)
        except BadCall:  # what is no base64, say, which no schema tells
            continue
        found = judge.faults(
            operation.path, operation.method, request.target, request.headers, request.content
        )
        if not found:
            return ""
        first = first if number else str(found)
    return first


def check_stubs(path: Path) -> None:
    """Check the stub of a module: valid Python in which every name is known, once."""
    api = read_api(parse_text(path.read_bytes()), variables={})
    known = KnownTools({"api": api.tools})
    tree = ast.parse(known.stub("api"))
    defined = {"str", "int", "float", "bool", "list", "dict", "None"}
    functions: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom | ast.Import):
            defined |= {each.asname or each.name for each in node.names}
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            assert node.name not in functions, f"{path.name}: {node.name} twice"
            functions.append(node.name)
        elif isinstance(node, ast.Assign):
            defined |= {each.id for each in node.targets if isinstance(each, ast.Name)}
    names = [each for each in ast.walk(tree) if isinstance(each, ast.Name)]
    used = {each.id for each in names if isinstance(each.ctx, ast.Load)}
    assert used <= defined | set(functions), (path.name, used - defined - set(functions))
    for tool in list(known.functions("api").values())[::25]:
        compile(render_stub(tool), tool.path, "exec")


def type_faults(specs: Iterable[Path], directory: Path) -> list[str]:
    """Return what mypy finds wrong with the stubs of all operations, at its strictest."""
    (directory / "ty_extensions.pyi").write_text(CHECKER)
    stubs = []
    for number, path in enumerate(specs):
        api = read_api(parse_text(path.read_bytes()), variables={})
        stubs.append(directory / f"api_{number}.pyi")
        stubs[-1].write_text(f"# {path.name}\n{KnownTools({'api': api.tools}).stub('api')}")
    options = ["--strict", "--config-file", "", "--cache-dir", str(directory / "cache")]
    command = [sys.executable, "-m", "mypy", *options, *map(str, stubs)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    said, broken = checked.stdout, checked.stderr
    return [line for line in [*said.splitlines(), *broken.splitlines()] if ": error:" in line]


def test_stubs_of_varied_specifications_type_check(specs: list[Path], tmp_path: Path) -> None:
    assert type_faults(varied(specs), tmp_path) == []


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_stubs_of_every_specification_type_check(specs: list[Path], tmp_path: Path) -> None:
    assert type_faults(specs, tmp_path) == []


LOAD = """
import sys, time
from functools import partial
from pathlib import Path
import anyio
from toolfold.catalog.openapi.cache import ApiCache
from toolfold.catalog.openapi.load import load_api
from toolfold.config.servers import ServerConfig

spec, directory = Path(sys.argv[1]), Path(sys.argv[2])
server = ServerConfig(name="api", source=spec, transport="openapi", spec=str(spec))
began = time.process_time()
api = anyio.run(partial(load_api, server, ApiCache(directory, server), ask=None))
print(len(api.tools), time.process_time() - began)
lines = Path("/proc/self/status").read_text().splitlines()
print(next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")))
"""


def test_the_largest_specification_is_read_once(specs: list[Path], tmp_path: Path) -> None:
    """In 2 s of processor time and 200 MB the first time, in 0.2 s from the cache."""
    (tmp_path / "openapi").mkdir()
    command = [sys.executable, "-c", LOAD, str(specs[-1]), str(tmp_path)]
    for limit_s in (2.0, 0.2):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        count, took_s, memory_mb = map(float, done.stdout.split())
        assert count == 2_958
        assert took_s < limit_s
        assert memory_mb < 200


def varied(specs: list[Path]) -> Iterator[Path]:
    small = [path for path in specs if path.stat().st_size < 400_000]
    yield from small[:: max(1, len(small) // VARIED)][:VARIED]


def test_varied_specifications_load_and_make_valid_requests(specs: list[Path]) -> None:
    count, faults = 0, []
    for path in varied(specs):
        check_stubs(path)
        made, found = faults_of(path)
        count, faults = count + made, [*faults, *found]
    assert count > 100
    assert len(faults) <= count * MAX_FAULTY_SHARE, faults[:10]


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_every_specification_loads_and_makes_valid_requests(specs: list[Path]) -> None:
    count, faults, broken = 0, [], []
    for path in specs:
        try:
            check_stubs(path)
            made, found = faults_of(path)
        except Exception as error:  # noqa: BLE001  # counted
            broken.append(f"{path.name}: {error!r}")
            continue
        count, faults = count + made, [*faults, *found]
    assert broken == []
    assert len(faults) <= count * MAX_FAULTY_SHARE, faults[:20]


@pytest.mark.anyio
async def test_apis_answer_from_their_examples_through_execute_code(
    specs: list[Path], running: MakeApp
) -> None:
    chosen = [path for path in specs if 4_000 < path.stat().st_size < 40_000][::3][:SERVED]
    apis = {f"api{number}": ServedApi.of(path) for number, path in enumerate(chosen)}
    assert len(apis) == SERVED
    with serving_apis(apis) as server:
        entries = {
            name: {"openapi": str(path), "url": f"{server.url}/{name}"}
            for name, path in zip(apis, chosen, strict=True)
        }
        async with running(entries) as app:
            await app.app.catalog.learn()
            lines = [line for name in apis for line in calls_of(name, apis[name], app.app.catalog)]
            imports = "".join(f"import {name}\n" for name in apis)
            result = await app.run(imports + "\n".join(lines) + "\nprint('done')")
    assert result.output.endswith("done\n"), result.text
    assert all(api.asked for api in apis.values())
    assert [fault for api in apis.values() for fault in api.faults] == []


def calls_of(name: str, api: ServedApi, catalog: Any) -> Iterator[str]:
    """Give lines of guest code that read what can be read of an API."""
    by_name = {tool.listed.name: tool for tool in catalog.functions(name).values()}
    for operation in list(api.api.operations.values())[:6]:
        tool = by_name[operation.name]
        if operation.method != "GET" and tool.listed.destructive:
            continue
        try:
            arguments = sample(tool.listed.input_schema, tool.listed.input_schema)
        except NoSample:
            continue
        yield f"{name}.{tool.function}(**{arguments!r})"
