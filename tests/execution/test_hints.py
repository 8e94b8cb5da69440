"""What is said after a failure, besides its own words."""

import pytest
from support import MakeApp, test_server

from toolfold.execution.hints import hint_for
from toolfold.sandbox.cpython.kernel import missing_walls
from toolfold.sandbox.sandbox import GuestFailure

needs_walls = pytest.mark.skipif(missing_walls() is not None, reason=str(missing_walls()))
APPEND = "with open('/workspace/log.txt', 'a') as file:\n    file.write('line\\n')\n"


@needs_walls
@pytest.mark.parametrize(
    ("before", "lacking", "lacked"),
    [
        (APPEND, "getattr('abc', 'maketrans')('a', 'b')", "str.maketrans"),
        (APPEND, "text = str\ngetattr(text, 'maketrans')('a', 'b')", "str.maketrans"),
        (
            "import null\nnull.put(value=1)\n",
            "getattr(3, 'as_integer_ratio')()",
            "int.as_integer_ratio",
        ),
        (APPEND, "open('/workspace/new.txt', 'x')", "lacks this"),
    ],
)
async def test_what_the_quick_interpreter_lacks_is_named_with_the_way_to_go_on(
    running: MakeApp, before: str, lacking: str, lacked: str
) -> None:
    async with running({"null": test_server("null")}) as toolfold:
        stuck = await toolfold.run(before + lacking)
        rest = await toolfold.run(f"import io\n{lacking}\n1")
        log = await toolfold.run("import os\nos.path.getsize('/workspace/log.txt')")

    assert stuck.tier == "monty"
    assert f"{lacked}. CPython has it" in stuck.text
    assert "new run that starts with `import io`" in stuck.text
    assert (rest.success, rest.tier) == (True, "cpython"), rest.text
    assert log.value == 5 if before is APPEND else not log.success


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("ZeroDivisionError: division by zero", None),
        ("AttributeError: 'dict' object has no attribute 'title'", "use value['key']"),
        ("AttributeError: 'NoneType' object has no attribute 'items'", "use value['key']"),
        ("AttributeError: 'Order' object has no attribute 'total'", "use value['key']"),
        (
            "AttributeError: 'function' object has no attribute '__doc__'",
            'tools.describe("server.tool")',
        ),
        ("AttributeError: module 're' has no attribute 'find'", "write it yourself"),
        ("AttributeError: module 'subprocess' has no attribute 'run'", "write it yourself"),
        ("AttributeError: 'dict' object has no attribute 'fromkeys'", "lacks dict.fromkeys"),
        ("AttributeError: module 'json' has no attribute 'JSONEncoder'", "lacks json.JSONEncoder"),
        (
            "AttributeError: type object 'datetime.datetime' has no attribute 'strptime'",
            "lacks datetime.datetime.strptime",
        ),
    ],
)
def test_only_what_python_has_is_said_to_be_lacking(message: str, hint: str | None) -> None:
    failure = GuestFailure(kind="error", message=message)

    for has_cpython in (True, False):
        told = hint_for(failure, "monty", has_cpython=has_cpython)
        assert hint in (told or "") if hint else told is None
        assert ("CPython" in (told or "")) == (has_cpython and "lacks" in (hint or ""))


@pytest.mark.parametrize("interpreter", ["", ", io"])
async def test_a_field_that_a_value_of_memory_lacks_is_told_with_those_it_has(
    running: MakeApp, interpreter: str
) -> None:
    code = f"import memory{interpreter}\nfound = memory.search('x')\n"

    async with running({}) as toolfold:
        missing = await toolfold.run(f"{code}found.notes")
        as_dict = await toolfold.run(f"{code}found['memories']")

    assert "Hint: it has: memories, total, query." in missing.text
    assert "value['key']" not in missing.text
    assert "use value.field" in as_dict.text
