"""Write what is derived from the table of verbs and must be light to import, so that it is kept.

    python scripts/write_verbs.py            after a verb has come or changed; a test asks for it

That is `toolfold.api`, the methods of `toolfold.Client`, the commands of `toolfold memory` that
need no words of their own, and the tools of memory as relays know them.
"""

import ast
import inspect
import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from toolfold.entrypoints.mcp.memory import memory_tools
from toolfold.memory import verbs as definitions
from toolfold.memory.verbs import VERBS, Verb

ROOT = Path(__file__).parents[1] / "src/toolfold"
MADE_BY = "Made by `scripts/write_verbs.py`: do not edit."
FORMS = {
    "str": "forms.text",
    "int": "forms.number",
    "bool": "bool",
    "tuple[str, ...]": "forms.texts",
    "CompactSearchResult": "forms.found",
    "tuple[CompactSearchResult, ...]": "forms.all_found",
    "Note": "forms.note",
    "tuple[Note, ...]": "forms.notes",
    "CompactHealthInfo": "forms.health",
}
"""What reads answers that most scripts want, and is lighter than what reads any."""


class Parameter(NamedTuple):
    """A parameter of a verb, as its source has it."""

    name: str
    annotation: str
    default: str | None
    is_keyword: bool


class Signature:
    """The signature of a verb as source, and from where the names in it come."""

    def __init__(self, verb: Verb) -> None:
        self.verb = verb
        source = textwrap.dedent(inspect.getsource(verb.method))
        [node] = ast.parse(source).body
        assert isinstance(node, ast.AsyncFunctionDef)
        assert node.returns is not None
        self.returns = ast.unparse(node.returns).replace("AsyncIterator[", "Iterator[")
        self.is_paged = self.returns.startswith("Iterator[")
        annotations = {
            each.arg: ast.unparse(each.annotation)
            for each in [*node.args.args, *node.args.kwonlyargs]
            if each.annotation
        }
        given = inspect.signature(verb.method).parameters.values()
        self.parameters = [
            Parameter(
                each.name,
                annotations[each.name],
                None if each.default is each.empty else _literal(each.default),
                each.kind is each.KEYWORD_ONLY,
            )
            for each in given
            if each.name not in ("self", "progress")
        ]
        self.tells_progress = any(each.name == "progress" for each in given)
        self._origins = _origins(verb)

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.parameters]

    def imports(self) -> Iterator[tuple[str, str]]:
        """Yield modules and the names to be imported from them for the annotations."""
        texts = [*(each.annotation for each in self.parameters), self.returns]
        for name in dict.fromkeys(re.findall(r"[A-Za-z_]\w*", " ".join(texts))):
            if name == "Iterator":
                yield "collections.abc", name
            elif name in self._origins:
                yield self._origins[name], name

    def origin(self, name: str) -> str:
        return self._origins[name]


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _origins(verb: Verb) -> dict[str, str]:
    """Return from where the module of a verb has its names."""
    module = inspect.getmodule(verb.method)
    assert module is not None
    tree = ast.parse(inspect.getsource(module))
    return {
        alias.asname or alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def _documentation(verb: Verb, indent: str) -> str:
    text = re.split(r"^Raises:$", inspect.getdoc(verb.method) or "", flags=re.MULTILINE)[0].strip()
    text = text.replace("\\", "\\\\")
    if "\n" not in text:
        return f'{indent}"""{text}"""\n'
    return textwrap.indent(f'"""{text}\n"""', indent, lambda line: bool(line.strip())) + "\n"


def _written(parameters: list[Parameter], *, extra: str = "") -> str:
    parts, is_open = [], False
    for each in parameters:
        if each.is_keyword and not is_open:
            parts.append("*")
            is_open = True
        default = "" if each.default is None else f" = {each.default}"
        parts.append(f"{each.name}: {each.annotation}{default}")
    if extra:
        parts += [extra] if is_open else ["*", extra]
    return ", ".join(parts)


def api_module(module: str, about: str, *, exported: tuple[str, ...] = ()) -> str:
    """Return the source of the functions of one module of guest code, for scripts."""
    functions, needed, used = [], {}, set()
    verbs = [verb for verb in VERBS.values() if verb.module == module and verb.name not in exported]
    for verb in verbs:
        text = _function(Signature(verb), needed)
        used |= set(re.findall(r"\b(forms|absolute|ask_for_pages|ask)\b", text))
        functions.append(text)
    names = sorted([*(verb.name for verb in verbs), *exported])
    late = "".join(
        f"    from {source} import {', '.join(sorted(found))}\n"
        for source, found in sorted(needed.items())
    )
    door = ", ".join(sorted(used - {"forms"}))
    again = f"from toolfold.api.verbs import {', '.join(exported)}\n" if exported else ""
    return (
        f'"""{about} {MADE_BY}"""\n\nfrom __future__ import annotations\n\n'
        "from typing import TYPE_CHECKING\n\nfrom toolfold.api import forms\n"
        f"from toolfold.api.door import {door}\n{again}\nif TYPE_CHECKING:\n{late}\n"
        f"__all__ = {json.dumps(names)}\n\n\n" + "\n\n".join(functions)
    )


def _function(signature: Signature, needed: dict[str, set[str]]) -> str:
    verb, file = signature.verb, signature.verb.file
    parameters = [
        each._replace(annotation="str | PathLike[str]") if each.name == file else each
        for each in signature.parameters
    ]
    for source, name in signature.imports():
        needed.setdefault(source, set()).add(name)
    if file:
        needed.setdefault("os", set()).add("PathLike")
    extra = ""
    if signature.tells_progress:
        needed.setdefault("toolfold.api.door", set()).add("OnProgress")
        extra = "on_progress: OnProgress | None = None"
    given = "locals()" if signature.names else "{}"
    if file or extra:
        pairs = [f'"{n}": absolute({n})' if n == file else f'"{n}": {n}' for n in signature.names]
        given = f"{{{', '.join(pairs)}}}"
    options = ", may_repeat=True" if verb.may_repeat else ""
    options += ", on_progress=on_progress" if extra else ""
    head = f"def {verb.name}({_written(parameters, extra=extra)}) -> {signature.returns}:\n"
    return head + _documentation(verb, "    ") + _body(signature, given, options)


def _body(signature: Signature, given: str, options: str) -> str:
    path, returns = signature.verb.path, signature.returns
    if signature.is_paged:
        return f'    return map(forms.found, ask_for_pages("{path}", {given}))\n'
    asked = f'ask("{path}", {given}{options})'
    if returns in FORMS:
        return f"    return {FORMS[returns]}({asked})\n"
    if returns == "JsonObject":
        return f"    answer: JsonObject = {asked}\n    return answer\n"
    many = re.fullmatch(r"tuple\[(\w+), \.\.\.\]", returns)
    kind = many[1] if many else returns
    where = f'"{signature.origin(kind)}", "{kind}"'
    read = "forms.all_named" if many else "forms.named"
    return f"    answer: {returns} = {read}({where}, {asked})\n    return answer\n"


def client_module() -> str:
    """Return the source of the methods of `Client`: verbs that have a route and answer whole."""
    tree = ast.parse((ROOT / "client/client.py").read_text(encoding="utf-8"))
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    needed: dict[str, set[str]] = {}
    methods = [
        _method(Signature(verb), needed)
        for verb in VERBS.values()
        if verb.route and not verb.route.pages and verb.name not in own
    ]
    imports = "".join(
        f"from {source} import {', '.join(sorted(names))}\n"
        for source, names in sorted(needed.items())
    )
    return (
        f'"""The verbs of memory as methods of `Client`. {MADE_BY}"""\n\n{imports}'
        "from toolfold.client.connection import RestConnection\n"
        "from toolfold.jsontypes import typed\n\n\n"
        'class VerbMethods:\n    """Verbs of memory over REST."""\n\n'
        "    _door: RestConnection\n\n" + "\n".join(methods)
    )


def _method(signature: Signature, needed: dict[str, set[str]]) -> str:
    verb, route = signature.verb, signature.verb.route
    assert route is not None
    for source, name in signature.imports():
        needed.setdefault(source, set()).add(name)
    in_path = re.findall(r"\{(\w+)\}", route.path)
    parameters = [
        each._replace(default=None, annotation=each.annotation.replace(" | None", ""))
        if each.name in in_path
        else each
        for each in signature.parameters
    ]
    parts = [
        part[1:-1] if part.startswith("{") else f'"{part}"' for part in route.path[1:].split("/")
    ]
    sent = [f'"{name}": {name}' for name in signature.names if name not in in_path]
    arguments = [f'"{route.method}"', *parts]
    place = "body" if route.method in ("POST", "PATCH") else "query"
    if sent or place == "body":
        arguments.append(f"{place}={{{', '.join(sent)}}}")
    arguments.append(f"may_repeat={verb.may_repeat}")
    answer = f"self._door.ask({', '.join(arguments)})" + (f'["{route.wrap}"]' if route.wrap else "")
    head = f"    def {verb.name}(self, {_written(parameters)}) -> {signature.returns}:\n"
    body = f"        return typed({signature.returns}, {answer})\n"
    return head + _documentation(verb, " " * 8) + body


def commands_module() -> str:
    """Return the source of the table of commands: name, help, verb, how to ask and read it."""
    rows = []
    for verb in VERBS.values():
        if verb.is_command:
            about = definitions.description(verb).partition("\n")[0].rstrip(".")
            rows.append(
                (verb.name.replace("_", "-"), about, verb.path, verb.may_repeat, _options(verb))
            )
    return (
        f'"""The verbs of memory as commands. {MADE_BY}"""\n\n'
        "Row = tuple[str, str, str, bool, tuple[tuple[str, str, bool], ...]]\n\n"
        f"COMMANDS: tuple[Row, ...] = {tuple(rows)!r}\n"
    )


def _options(verb: Verb) -> tuple[tuple[str, str, bool], ...]:
    """Return for each parameter its name, its type and whether it must be given."""
    schema = definitions.input_schema(verb)
    properties, required = schema["properties"], schema["required"]
    assert isinstance(properties, dict)
    assert isinstance(required, list)
    found = []
    for name, described in properties.items():
        kind = described.get("type", "string") if isinstance(described, dict) else "string"
        kind = "texts" if kind in ("array", ["string", "array"]) else kind
        found.append((name, kind if isinstance(kind, str) else "string", name in required))
    return tuple(found)


def outputs() -> dict[Path, str]:
    """Return what each file shall hold, before it is formatted."""
    return {
        ROOT / "relay/surfaces/memory.json": json.dumps({"tools": memory_tools()}, indent=2) + "\n",
        ROOT / "api/verbs.py": api_module("memory", "The verbs of memory, for scripts."),
        ROOT / "api/graph.py": api_module(
            "graph",
            "The knowledge graph, for scripts.",
            exported=("create_entity", "search_graph"),
        ),
        ROOT / "client/verbs.py": client_module(),
        ROOT / "entrypoints/verb_commands.py": commands_module(),
    }


def formatted(path: Path, text: str) -> str:
    """Return a text as `ruff` leaves it."""
    if path.suffix != ".py":
        return text
    ruff = str(Path(sys.executable).parent / "ruff")
    for arguments in (["check", "--fix-only", "--quiet"], ["format", "--quiet"]):
        command = [ruff, *arguments, "--stdin-filename", str(path), "-"]
        text = subprocess.run(
            command, input=text, capture_output=True, text=True, check=True
        ).stdout
    return text


def main() -> None:
    for path, text in outputs().items():
        path.write_text(formatted(path, text), encoding="utf-8")


if __name__ == "__main__":
    main()
