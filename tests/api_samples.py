"""Make values that schemas admit, and judge requests by the specification as it was written."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from jsonschema import Draft4Validator, Draft202012Validator
from jsonschema.exceptions import ValidationError
from openapi_schema_validator import OAS30Validator, OAS31Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT4, DRAFT202012

MAX_DEPTH = 12
_VARIANTS = 9

_FORMATS = {
    "date-time": "2024-05-06T07:08:09Z",
    "date": "2024-05-06",
    "time": "07:08:09Z",
    "uuid": "3fa85f64-5717-4562-b3fc-2c963f66afa6",
    "email": "ada@example.org",
    "idn-email": "ada@example.org",
    "uri": "https://example.org/a",
    "url": "https://example.org/a",
    "uri-reference": "https://example.org/a",
    "hostname": "example.org",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "byte": "YQ==",
    "duration": "P1D",
}


class NoSample(Exception):
    """Nothing was found that a schema admits."""


def arguments_for(schema: dict[str, Any], *, full: bool = False) -> Iterator[dict[str, Any]]:
    """Give arguments that `schema` admits as a validator has it: of each alternative, some."""
    validator = Draft202012Validator(schema)
    for reach in (2, 4, 6) if full else (0, 3, 5):
        for salt in range(_VARIANTS):
            with suppress(NoSample):
                made = sample(schema, schema, full=reach, salt=salt)
                if validator.is_valid(made):
                    yield made
    if full:
        yield from (_grown(base, schema, validator) for base in arguments_for(schema))


def _grown(base: dict[str, Any], schema: dict[str, Any], validator: Any) -> dict[str, Any]:
    """Return as many arguments as fit together, beginning with those that there must be."""
    made = base
    for name, inner in schema.get("properties", {}).items():
        if name not in made:
            with suppress(NoSample):
                more = {**made, name: sample(inner, schema, full=2, depth=1)}
                made = more if validator.is_valid(more) else made
    return made


def sample(schema: Any, root: Any, *, full: int = 0, depth: int = 0, salt: int = 0) -> Any:
    """Return a value that `schema` admits: optional properties too, down to the depth `full`."""
    if schema is True or schema == {}:
        return "any"
    if schema is False or depth > MAX_DEPTH:
        raise NoSample
    schema = _merged(schema, root)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        values = [v for v in schema["enum"] if _is_of(v, schema.get("type"))] or schema["enum"]
        return values[salt % len(values)]
    for keyword in ("oneOf", "anyOf"):
        parts = schema.get(keyword, ())
        for at in range(len(parts)):
            part = parts[(at + salt) % len(parts)]
            rest = {key: value for key, value in schema.items() if key != keyword}
            try:
                return sample({"allOf": [rest, part]}, root, full=full, depth=depth + 1, salt=salt)
            except NoSample:
                continue
        if schema.get(keyword):
            raise NoSample
    kinds = schema.get("type") or _guess(schema)
    kinds = kinds if isinstance(kinds, list) else [kinds]
    kind = next((each for each in kinds if each != "null"), "null")
    return _MAKERS[kind](schema, root, full, depth, salt)


def _is_of(value: Any, kind: Any) -> bool:
    kinds = kind if isinstance(kind, list) else [kind]
    names = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
    name = names.get(type(value))
    return kind is None or name in kinds or (name == "integer" and "number" in kinds)


def _guess(schema: Any) -> str:
    if "properties" in schema or "additionalProperties" in schema or "required" in schema:
        return "object"
    if "items" in schema:
        return "array"
    if "minimum" in schema or "maximum" in schema:
        return "integer"
    return "string"


def _merged(schema: Any, root: Any, hops: int = 0) -> dict[str, Any]:
    """Fold references and `allOf` into one schema, the narrower bound of each."""
    whole: dict[str, Any] = {}
    if hops > 40:
        raise NoSample
    parts = [{key: value for key, value in schema.items() if key not in ("$ref", "allOf")}]
    if "$ref" in schema:
        target = root
        for step in schema["$ref"].split("/")[1:]:
            target = target[unquote(step).replace("~1", "/").replace("~0", "~")]
        parts.append(_merged(target, root, hops + 1) if isinstance(target, dict) else {})
    parts += [
        _merged(part, root, hops + 1) for part in schema.get("allOf", ()) if isinstance(part, dict)
    ]
    for part in parts:
        for key, value in part.items():
            if key not in whole:
                whole[key] = value
            elif key == "properties":
                both = {n: {"allOf": [whole[key][n], value[n]]} for n in value if n in whole[key]}
                whole[key] = {**whole[key], **value, **both}
            elif key == "required":
                whole[key] = list(dict.fromkeys([*whole[key], *value]))
            elif key == "enum":
                whole[key] = [each for each in whole[key] if each in value]
            elif key in ("minimum", "minLength", "minItems"):
                whole[key] = max(whole[key], value)
            elif key in ("maximum", "maxLength", "maxItems"):
                whole[key] = min(whole[key], value)
            elif key == "type":
                whole[key] = _common(whole[key], value)
            elif key in ("oneOf", "anyOf"):
                whole.setdefault("allOf_later", []).append({key: value})
    return whole


def _common(one: Any, other: Any) -> Any:
    mine = one if isinstance(one, list) else [one]
    theirs = other if isinstance(other, list) else [other]
    both = [each for each in mine if each in theirs]
    if not both and "integer" in [*mine, *theirs] and "number" in [*mine, *theirs]:
        return "integer"
    if not both:
        raise NoSample
    return both


def _string(schema: Any, root: Any, full: int, depth: int, salt: int) -> str:
    least, most = schema.get("minLength", 0), schema.get("maxLength", 1 << 30)
    if "pattern" in schema:
        for extra in sorted({*range(12), 16, 24, 31, 32, 40, 64, least, max(least - 1, 0)}):
            text = _matching(schema["pattern"], extra)
            text += "a" * (least - len(text))
            if least <= len(text) <= most and re.search(schema["pattern"], text):
                return text
        raise NoSample
    text = _FORMATS.get(schema.get("format", ""), "a" if not salt else f"a{salt}")
    if not least <= len(text) <= most:
        text = ("a" * max(least, 1) + (str(salt) if salt else ""))[: max(most, 0)]
    return text


def _number(schema: Any, root: Any, full: int, depth: int, salt: int) -> float:
    return float(_integer(schema, root, full, depth, salt))


def _integer(schema: Any, root: Any, full: int, depth: int, salt: int) -> Any:
    low = schema.get("minimum")
    high = schema.get("maximum")
    if "exclusiveMinimum" in schema:
        low = max(
            low if low is not None else schema["exclusiveMinimum"] + 1,
            schema["exclusiveMinimum"] + 1,
        )
    if "exclusiveMaximum" in schema:
        high = min(
            high if high is not None else schema["exclusiveMaximum"] - 1,
            schema["exclusiveMaximum"] - 1,
        )
    if "exclusiveMinimum" in schema and "exclusiveMaximum" in schema and _is_real(schema):
        return (schema["exclusiveMinimum"] + schema["exclusiveMaximum"]) / 2
    value = low if low is not None else (min(1, high) if high is not None else 1)
    step = schema.get("multipleOf")
    if step:
        value = -(-value // step) * step
    elif schema.get("type") in ("integer", ["integer"]):
        value = -int(-value // 1)
    if value == int(value):
        value = int(value)
    value += salt * (step or 1)
    if high is not None and value > high and salt == 0:
        kinds = schema.get("type")
        if kinds != "integer" and "integer" not in (kinds if isinstance(kinds, list) else []):
            return (schema.get("exclusiveMinimum", low) + high) / 2
        raise NoSample
    return value


def _is_real(schema: Any) -> bool:
    kinds = schema.get("type")
    return "integer" not in (kinds if isinstance(kinds, list) else [kinds])


def _array(schema: Any, root: Any, full: int, depth: int, salt: int) -> list[Any]:
    count = schema.get("minItems", 0)
    count = max(count, 1) if depth < 3 and schema.get("maxItems", 1) else count
    items = schema.get("items", True)
    salts = range(count) if schema.get("uniqueItems") else [salt] * count
    prefix = schema.get("prefixItems", [])
    try:
        return [
            sample(
                prefix[at] if at < len(prefix) else items,
                root,
                full=full,
                depth=depth + 1,
                salt=each,
            )
            for at, each in enumerate(salts)
        ]
    except NoSample:
        if schema.get("minItems", 0):
            raise
        return []


def _object(schema: Any, root: Any, full: int, depth: int, salt: int) -> dict[str, Any]:
    properties = schema.get("properties", {})
    made: dict[str, Any] = {}
    for name in schema.get("required", []):
        inner = properties.get(name, schema.get("additionalProperties", True))
        made[name] = sample(inner, root, full=full, depth=depth + 1, salt=salt)
    if depth < full:
        for name, inner in properties.items():
            if name not in made:
                try:
                    made[name] = sample(inner, root, full=full, depth=depth + 1, salt=salt)
                except NoSample:
                    continue
    for number in range(schema.get("minProperties", 0) - len(made)):
        rest = [name for name in properties if name not in made]
        name = rest[0] if rest else f"key{number}"
        inner = properties.get(name, schema.get("additionalProperties", True))
        made[name] = sample(inner, root, full=full, depth=depth + 1, salt=salt)
    return made


_MAKERS: dict[str, Any] = {
    "string": _string,
    "number": _number,
    "integer": _integer,
    "boolean": lambda *_: True,
    "null": lambda *_: None,
    "array": _array,
    "object": _object,
}


def _matching(pattern: str, extra: int) -> str:
    """Return a text for a pattern, its open repeats `extra` times more than they must."""
    return "".join(_pieces(re._parser.parse(pattern), extra, {}))  # type: ignore[attr-defined]


def _pieces(parsed: Any, extra: int, groups: dict[int, str]) -> Iterator[str]:
    for operator, argument in parsed:
        name = str(operator)
        if name == "LITERAL":
            yield chr(argument)
        elif name == "NOT_LITERAL":
            yield "b" if chr(argument) == "a" else "a"
        elif name == "ANY":
            yield "a"
        elif name == "IN":
            yield _one_of(argument[extra % len(argument) :] if _is_plain(argument) else argument)
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, inner = argument
            for _ in range(min(int(least) + extra, int(most)) if most != least else int(least)):
                yield from _pieces(inner, extra, groups)
        elif name == "SUBPATTERN":
            groups[argument[0]] = text = "".join(_pieces(argument[-1], extra, groups))
            yield text
        elif name == "BRANCH":
            yield from _pieces(argument[1][extra % len(argument[1])], extra, groups)
        elif name == "GROUPREF":
            yield groups.get(argument, "")


def _is_plain(members: Any) -> bool:
    return str(members[0][0]) == "CATEGORY"


def _one_of(members: Any) -> str:
    class_text = {
        "CATEGORY_DIGIT": "0",
        "CATEGORY_WORD": "a",
        "CATEGORY_SPACE": " ",
        "CATEGORY_NOT_SPACE": "a",
        "CATEGORY_NOT_DIGIT": "a",
        "CATEGORY_NOT_WORD": "-",
    }
    if str(members[0][0]) == "NEGATE":
        taken = set()
        for operator, argument in members[1:]:
            if str(operator) == "LITERAL":
                taken.add(chr(argument))
            elif str(operator) == "RANGE":
                taken |= {chr(code) for code in range(argument[0], min(argument[1], 300) + 1)}
            elif str(operator) == "CATEGORY":
                taken |= set(
                    {"CATEGORY_DIGIT": "0123456789", "CATEGORY_SPACE": " \t\n"}.get(
                        str(argument), "abcdefghijklmnopqrstuvwxyz0123456789_"
                    )
                )
        return next(char for char in "ab0-.~ÄЖ" if char not in taken)
    operator, argument = members[0]
    if str(operator) == "LITERAL":
        return chr(argument)
    if str(operator) == "RANGE":
        return chr(argument[0])
    return class_text.get(str(argument), "a")


class Judge:
    """Says of requests what is wrong with them, by a specification as it was written."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.is_swagger = "swagger" in document
        version = str(document.get("openapi", ""))
        is_new = version.startswith(("3.1", "3.2"))
        self._class: Any = (
            Draft4Validator if self.is_swagger else OAS31Validator if is_new else OAS30Validator
        )
        kind = DRAFT202012 if is_new else DRAFT4
        self.is_new = is_new
        mended = _mended(document, self)
        resource = Resource(contents=mended, specification=kind)
        self._registry: Any = Registry().with_resource("urn:spec", resource)

    def resolve(self, value: Any) -> Any:
        while isinstance(value, dict) and isinstance(value.get("$ref"), str):
            target: Any = self.document
            for step in unquote(value["$ref"]).split("/")[1:]:
                key = step.replace("~1", "/").replace("~0", "~")
                target = target[int(key)] if isinstance(target, list) else target[key]
            value = target
        return value

    def is_valid(self, value: Any, schema: Any) -> bool:
        validator = self._class(self._rebased(schema), registry=self._registry)
        try:
            return next(validator.iter_errors(value), None) is None
        except ValidationError:
            return False

    def _rebased(self, schema: Any) -> Any:
        """Return a schema whose references lead into the specification."""
        return _led(_mended(schema, self))

    def faults(
        self, path: str, method: str, target: str, headers: Any, content: bytes | None
    ) -> list[str]:
        """Return what is wrong with a request for the operation at `path`."""
        item = self.resolve(
            self.document["paths"].get(path) or self.document["paths"][path.lstrip("/")]
        )
        operation = item[method.lower()]
        declared = {}
        for each in [*item.get("parameters", []), *operation.get("parameters", [])]:
            each = self.resolve(each)
            declared[each["name"], each["in"]] = each
        parts = urlsplit(target)
        found: dict[str, Any] = {
            "query": parse_qsl(parts.query, keep_blank_values=True),
            "header": [(name.lower(), text) for name, text in headers],
            "path": _path_values(path, parts.path),
            "cookie": [
                tuple(unquote(x) for x in pair.partition("=")[::2])
                for name, text in headers
                if name.lower() == "cookie"
                for pair in text.split("; ")
            ],
        }
        faults = []
        for (name, place), parameter in declared.items():
            if place in ("body", "formData"):
                continue
            if place == "header" and name.lower() in _OF_TRANSPORT:
                continue
            fault = self._parameter(name, place, parameter, found[place])
            faults += [fault] if fault else []
        faults += self._body(
            operation, declared, dict(found["header"]).get("content-type", ""), content
        )
        return faults

    def _parameter(self, name: str, place: str, parameter: Any, pairs: Any) -> str | None:
        key = name.lower() if place == "header" else name
        schema = parameter.get("schema") or {k: v for k, v in parameter.items() if k in _KEYWORDS}
        if parameter.get("content"):
            media = next(iter(parameter["content"].values()))
            texts = [json.loads(text) for n, text in pairs if n == key]
            good = any(self.is_valid(text, media.get("schema", {})) for text in texts)
            return None if good or not (texts or parameter.get("required")) else f"{place} {name}"
        candidates = list(self._decoded(key, parameter, schema, pairs))
        if not candidates:
            return f"{place} {name} is missing" if parameter.get("required") else None
        if any(self.is_valid(each, schema) for each in candidates):
            return None
        return f"{place} {name}: none of {candidates[:3]!r} fits {str(schema)[:200]}"

    def _decoded(self, key: str, parameter: Any, schema: Any, pairs: Any) -> Iterator[Any]:
        """Give what the texts of a parameter may mean."""
        own = [text for name, text in pairs if name == key]
        deep = [(n[len(key) :], text) for n, text in pairs if n.startswith(f"{key}[")]
        kinds = set(_kinds(schema, self))
        if deep:
            yield self.cast(_undeep(deep), schema)
        style = parameter.get("style") or parameter.get("collectionFormat") or ""
        between = {
            "pipes": "|",
            "pipeDelimited": "|",
            "ssv": " ",
            "spaceDelimited": " ",
            "tsv": "\t",
        }.get(style, ",")
        if "array" in kinds and own:
            yield self.cast(own, schema)
            yield self.cast(own[0].split(between), schema)
        if "object" in kinds and "string" not in kinds:
            yield self.cast(dict(pairs), schema)
            if own:
                flat = own[0].split(",")
                yield self.cast(dict(zip(flat[::2], flat[1::2], strict=False)), schema)
        for text in own:
            yield text
            yield self.cast(text, schema)

    def cast(self, value: Any, schema: Any, depth: int = 0) -> Any:
        """Return what text means where `schema` says that it is a number or a boolean."""
        if isinstance(value, str):
            if self.is_valid(value, schema):
                return value
            try:
                return json.loads(value)
            except ValueError:
                return value
        if depth > 8:
            return value
        if isinstance(value, list):
            items = _part(schema, "items", self)
            return [self.cast(each, items, depth + 1) for each in value]
        return {k: self.cast(v, _property(schema, k, self), depth + 1) for k, v in value.items()}

    def _body(self, operation: Any, declared: Any, media: str, content: bytes | None) -> list[str]:
        schema, required, fields = self._body_schema(operation, declared, media)
        if content is None:
            return ["the body is missing"] if required else []
        base = media.partition(";")[0]
        if "json" in base:
            value = json.loads(content)
        elif base == "application/x-www-form-urlencoded":
            value = self._form(parse_qsl(content.decode(), keep_blank_values=True), schema)
        elif base.startswith("multipart/"):
            value = self._form(_parts(content, media), schema)
        else:
            return []  # text and bytes as they are
        if fields:
            value = {k: v for k, v in value.items() if k in schema.get("properties", {})}
        return [] if self.is_valid(value, schema) else [f"the body {str(value)[:300]} does not fit"]

    def _body_schema(self, operation: Any, declared: Any, media: str) -> tuple[Any, bool, bool]:
        if not self.is_swagger:
            body = self.resolve(operation.get("requestBody") or {})
            content = body.get("content", {})
            for name, kind in sorted(content.items(), key=lambda each: each[0] == "*/*"):
                same = name.partition(";")[0].strip().lower() == media.partition(";")[0].lower()
                if same or name == "*/*":
                    return kind.get("schema", {}), body.get("required", False), False
            return {}, body.get("required", False), False
        for (_, place), parameter in declared.items():
            if place == "body":
                return parameter.get("schema", {}), parameter.get("required", False), False
        fields = {n: p for (n, place), p in declared.items() if place == "formData"}
        properties = {
            n: {} if p.get("type") == "file" else {k: v for k, v in p.items() if k in _KEYWORDS}
            for n, p in fields.items()
        }
        needed = [n for n, p in fields.items() if p.get("required") is True]
        schema = {"type": "object", "properties": properties}
        return schema | ({"required": needed} if needed else {}), bool(needed), True

    def _form(self, pairs: list[tuple[str, str]], schema: Any) -> Any:
        made: dict[str, Any] = {}
        known = schema.get("properties", {}) if isinstance(schema, dict) else {}
        names = (name if name in known else name.partition("[")[0] for name, _ in pairs)
        for name in dict.fromkeys(names):
            inner = _property(schema, name, self)
            candidates = list(self._decoded(name, {"style": "form"}, inner, pairs))
            fitting = [each for each in candidates if self.is_valid(each, inner)]
            made[name] = fitting[0] if fitting else candidates[0] if candidates else None
        return made


def _led(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {
            key: f"urn:spec{value}"
            if key == "$ref" and isinstance(value, str) and value.startswith("#")
            else _led(value)
            for key, value in schema.items()
            if key not in ("example", "examples", "default", "x-example")
        }
    return [_led(each) for each in schema] if isinstance(schema, list) else schema


def _mended(schema: Any, judge: Judge) -> Any:
    """Return a schema by which a request can be judged: the words are the specification's own.

    Before 3.1 what stands beside a reference does not count. What only answers have is not
    required of a request. Of two claims that nothing could fit both, one is not made: a type that
    none of the listed values has (or the values are those of its items), and no other properties
    than its own where the parts have more. Nor is a discriminator that names what is not there,
    or an expression that is not one of Python's, but for the slashes around it.
    """
    if isinstance(schema, list):
        return [_mended(each, judge) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if not judge.is_new and isinstance(schema.get("$ref"), str):
        return {"$ref": schema["$ref"]}
    made = {key: _mended(value, judge) for key, value in schema.items()}
    if isinstance(made.get("discriminator"), dict) and not _is_mapped(made["discriminator"], judge):
        del made["discriminator"]
    if isinstance(made.get("pattern"), str):
        made["pattern"] = re.sub(r"^/(\^.*\$)/$", r"\1", made["pattern"])
        if not _is_expression(made["pattern"]):
            del made["pattern"]
    if isinstance(made.get("allOf"), list) and made.get("additionalProperties") is False:
        del made["additionalProperties"]
    _settle_values(made)
    if isinstance(made.get("required"), list) and isinstance(made.get("properties"), dict):
        properties = schema["properties"]
        answered = {
            n for n, p in properties.items() if _is_answered(p) or _is_answered(judge.resolve(p))
        }
        made["required"] = [name for name in made["required"] if name not in answered]
        if not made["required"]:
            del made["required"]
    return made


def _is_mapped(discriminator: dict[str, Any], judge: Judge) -> bool:
    targets = (discriminator.get("mapping") or {}).values()
    try:
        return bool([judge.resolve({"$ref": target}) for target in targets])
    except (KeyError, IndexError, TypeError, ValueError):
        return False


def _is_answered(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("readOnly") is True


def _settle_values(made: dict[str, Any]) -> None:
    values, kind = made.get("enum"), made.get("type")
    if not isinstance(values, list) or not isinstance(kind, str):
        return
    if any(_is_of(value, kind) for value in values):
        return
    if kind == "array" and isinstance(made.get("items"), dict):
        made["items"] = {**made["items"], "enum": made.pop("enum")}
    else:
        del made["type"]


def _is_expression(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True


_OF_TRANSPORT = frozenset({"accept", "content-type", "content-length", "authorization"})
_KEYWORDS = frozenset(
    {
        *("type", "format", "items", "maximum", "exclusiveMaximum", "minimum", "enum"),
        *("exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems", "minItems"),
        *("uniqueItems", "multipleOf"),
    }
)


def _kinds(schema: Any, judge: Judge, depth: int = 0) -> Iterator[str]:
    schema = judge.resolve(schema)
    if not isinstance(schema, dict) or depth > 6:
        return
    kind = schema.get("type")
    yield from kind if isinstance(kind, list) else [kind] if kind else []
    if "properties" in schema:
        yield "object"
    if "items" in schema:
        yield "array"
    for keyword in ("allOf", "oneOf", "anyOf"):
        for part in schema.get(keyword, ()):
            yield from _kinds(part, judge, depth + 1)


def _part(schema: Any, keyword: str, judge: Judge, depth: int = 0) -> Any:
    schema = judge.resolve(schema)
    if not isinstance(schema, dict) or depth > 6:
        return {}
    if keyword in schema:
        return schema[keyword]
    for word in ("allOf", "oneOf", "anyOf"):
        for part in schema.get(word, ()):
            if found := _part(part, keyword, judge, depth + 1):
                return found
    return {}


def _property(schema: Any, name: str, judge: Judge, depth: int = 0) -> Any:
    schema = judge.resolve(schema)
    if not isinstance(schema, dict) or depth > 6:
        return {}
    if name in schema.get("properties", {}):
        return schema["properties"][name]
    for word in ("allOf", "oneOf", "anyOf"):
        for part in schema.get(word, ()):
            if (found := _property(part, name, judge, depth + 1)) != {}:
                return found
    others = schema.get("additionalProperties")
    return others if isinstance(others, dict) else {}


def _undeep(pairs: list[tuple[str, str]]) -> Any:
    """Put `[a][b]=c` together again."""
    root: dict[str, Any] = {}
    for name, text in pairs:
        keys = re.findall(r"\[([^\]]*)\]", name)
        place = root
        for key in keys[:-1]:
            place = place.setdefault(key, {})
        place[keys[-1]] = text
    return _listed(root)


def _listed(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {key: _listed(each) for key, each in value.items()}
    if inner and list(inner) == [str(at) for at in range(len(inner))]:
        return list(inner.values())
    return inner


def _path_values(template: str, path: str) -> list[tuple[str, str]]:
    bare = template.partition("#")[0].partition("?")[0]
    pieces = re.split(r"\{([^{}]*)\}", bare if bare.startswith("/") else f"/{bare}")
    pattern = "".join(
        ("([^/]+)" if pieces[at + 1] else "([^/]+?)")
        if at % 2
        else "".join(re.escape(c) for c in piece)
        for at, piece in enumerate(pieces)
    )
    found = re.fullmatch(pattern, unquote_path(path))
    return (
        [(name, unquote(text)) for name, text in zip(pieces[1::2], found.groups(), strict=True)]
        if found
        else []
    )


def unquote_path(path: str) -> str:
    """Return a path with all but the slashes in its values as they were."""
    return re.sub(
        r"%(?!2[fF])[0-9a-fA-F]{2}", lambda m: unquote(m[0]) if m[0] != "%25" else m[0], path
    )


def _parts(content: bytes, media: str) -> list[tuple[str, str]]:
    boundary = media.partition("boundary=")[2].encode()
    pairs = []
    for part in content.split(b"--" + boundary)[1:-1]:
        head, _, body = part.partition(b"\r\n\r\n")
        found = re.search(rb'name="([^"]*)"', head)
        if found:
            pairs.append(
                (unquote(found[1].decode()), body.removesuffix(b"\r\n").decode("utf-8", "replace"))
            )
    return pairs
