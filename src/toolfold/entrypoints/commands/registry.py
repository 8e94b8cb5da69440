"""Entries for servers that a `server.json`, or a registry's list of them, describes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from toolfold.errors import ConfigError, NotFound
from toolfold.jsontypes import Json, JsonObject
from toolfold.storage.files import read_file

_MAX_BYTES: Final = 32 * 1024 * 1024
_PACKAGE: Final = re.compile(r"@?[A-Za-z0-9][\w.-]*(?:[/:][A-Za-z0-9][\w.-]*)*")
_VERSION: Final = re.compile(r"[A-Za-z0-9][\w.+-]*")
_FLAG: Final = re.compile(r"--?[A-Za-z0-9][\w.-]*")
_VARIABLE: Final = re.compile(r"[A-Za-z_]\w*")
_REMOTES: Final = {"streamable-http": "http", "sse": "sse"}


def find_server(path: Path, name: str = "") -> JsonObject:
    """Return what a file says of a server: the only one, or that of a name.

    Raises:
        ConfigError: It cannot be read, or has several.
        NotFound: It has none of that name.
    """
    content = read_file(path, max_bytes=_MAX_BYTES)
    if content is None:
        raise NotFound(f"There is no file {path}.")
    try:
        found = list(_servers(json.loads(content)))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid JSON: {error}.") from error
    if name:
        found = [each for each in found if each.get("name") == name]
    if not found:
        raise NotFound(f"{path} describes no server{f' {name!r}' if name else ''}.")
    if len(found) > 1 and not name:
        raise ConfigError(f"{path} describes {len(found)} servers. Say which, with --registry.")
    return found[-1]  # versions of one server stand in their order


def _servers(document: Json) -> Iterator[JsonObject]:
    if isinstance(document, dict) and "servers" in document:
        document = document["servers"]
    for each in document if isinstance(document, list) else [document]:
        server = each.get("server", each) if isinstance(each, dict) else None
        if isinstance(server, dict) and isinstance(server.get("name"), str):
            yield server


def short_name(server: JsonObject) -> str:
    """Return what a server is called here: `y` for `io.github.x/y`."""
    return str(server["name"]).rpartition("/")[2]


def entry_of(server: JsonObject, env: JsonObject) -> JsonObject:
    """Return what stands in the file for a server: its first package that can be run, or its URL.

    Secrets are named, to be asked for; `env` has variables that the user gives.

    Raises:
        ConfigError: Nothing of it can be used here.
    """
    reasons = []
    for package in _objects(server.get("packages")):
        try:
            return _package(package, env)
        except ConfigError as error:
            reasons.append(str(error))
    for remote in _objects(server.get("remotes")):
        kind = _REMOTES.get(str(remote.get("type")))
        url = str(remote.get("url"))
        if kind and re.match(r"https?://[^/\s{]", url) and "{" not in url:
            headers = _named(remote.get("headers"), {})
            return {"type": kind, "url": url, **({"headers": headers} if headers else {})}
        reasons.append(f"its address {url!r} of type {remote.get('type')!r} cannot be used")
    why = "; ".join(reasons) or "it has neither packages nor remotes"
    raise ConfigError(f"{server['name']} cannot be added: {why}.")


def _package(package: JsonObject, env: JsonObject) -> JsonObject:
    kind, identifier = package.get("registryType"), str(package.get("identifier"))
    version = str(package.get("version") or "")
    transport = package.get("transport")
    if isinstance(transport, dict) and transport.get("type", "stdio") != "stdio":
        raise ConfigError(f"its package {identifier!r} does not speak over standard input")
    if not _PACKAGE.fullmatch(identifier) or (version and not _VERSION.fullmatch(version)):
        raise ConfigError(f"its package {identifier!r} has an odd name or version")
    variables = _named(package.get("environmentVariables"), env)
    before = list(_words(package.get("runtimeArguments")))
    after = list(_words(package.get("packageArguments")))
    match kind:
        case "npm":
            start = ["npx", "-y", *before, identifier + (f"@{version}" if version else "")]
        case "pypi":
            start = ["uvx", *before, identifier + (f"=={version}" if version else "")]
        case "oci":
            passed = [word for name in variables for word in ("-e", name)]
            tag = f":{version}" if version and ":" not in identifier.rpartition("/")[2] else ""
            start = ["docker", "run", "-i", "--rm", *passed, *before, identifier + tag]
        case _:
            raise ConfigError(f"packages of {kind!r} are not known here")
    command, *words = [*start, *after]
    return {"command": command, "args": [*words], **({"env": variables} if variables else {})}


def _words(written: Json) -> Iterator[str]:
    for each in _objects(written):
        value = each.get("value", each.get("default"))
        name = str(each.get("name") or "")
        if each.get("type") == "named":
            if not _FLAG.fullmatch(name):
                raise ConfigError(f"its argument {name!r} is no option")
            if value is None and each.get("isRequired"):
                raise ConfigError(_lacks(name))
            yield from [name] if value is None else [name, _open(value)]
        elif value is not None:
            yield _open(value)
        elif each.get("isRequired"):
            raise ConfigError(_lacks(str(each.get("valueHint") or "an argument")))


def _open(value: Json) -> str:
    """Return a value as it is meant, without anything that would be filled in from here."""
    text = str(value)
    if "${" in text or re.search(r"\{\w+\}", text):
        raise ConfigError(f"its argument {text!r} has to be filled in by hand")
    return text


def _lacks(what: str) -> str:
    return f"it needs {what}, so write it yourself: `toolfold add NAME -- COMMAND ARGS`"


def _named(written: Json, given: JsonObject) -> JsonObject:
    """Return variables or headers by name: what is given, a default, or where to find a secret."""
    found: JsonObject = dict(given)
    for each in _objects(written):
        name, value = str(each.get("name")), each.get("value", each.get("default"))
        if name in found:
            continue
        secret = re.sub(r"\W", "_", name)
        if not _VARIABLE.fullmatch(secret):
            raise ConfigError(f"it has a variable {name!r}, which cannot be")
        variables = each.get("variables")
        if isinstance(value, str) and isinstance(variables, dict):
            found[name] = _filled(value, variables)
        elif each.get("isSecret") and value is None:
            found[name] = f"${{keyring:{secret}}}"
        elif value is not None:
            found[name] = _open(value)
        elif each.get("isRequired"):
            found[name] = f"${{{secret}}}"
    return found


def _filled(value: str, variables: JsonObject) -> str:
    """Return a value with references to secrets in the place of its variables."""
    if "${" in value or not all(map(_VARIABLE.fullmatch, variables)):
        raise ConfigError(f"its value {value!r} has to be filled in by hand")
    for name in variables:
        value = value.replace(f"{{{name}}}", f"${{keyring:{name}}}")
    return value


def _objects(written: Json) -> list[JsonObject]:
    listed = written if isinstance(written, list) else []
    return [each for each in listed if isinstance(each, dict)]
