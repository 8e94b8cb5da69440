import ast
from itertools import product

import pytest

from toolfold.skills.rewrite import definition, link

KINDS = {"f": "skill", "grp": "group", "grp.x": "skill"}


def linked(source: str) -> str:
    tree = ast.parse(source)
    return link(source, list(ast.walk(tree)), KINDS.get).source


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from skills import f", "f = __skill_f__"),
        ("from skills import f as g, save", "from skills import save; g = __skill_f__"),
        ("from skills.grp import x; x()", "x = __skill_grp__x__; x()"),
        ("import os, skills\nskills.f(1)", "import os, skills\n__skill_f__(1)"),
        ("import skills.grp\nskills.grp.x", "import skills\n__skill_grp__x__"),
        ("import skills.grp as g\ng.x", "pass\n__skill_grp__x__"),
        ("from skills import grp\ngrp.x", "pass\n__skill_grp__x__"),
        ("import skills\nskills = [1]\nskills.f", "import skills\nskills = [1]\nskills.f"),
        ("import skills\ndef g(skills): skills.f", "import skills\ndef g(skills): skills.f"),
        ("skills.f", "skills.f"),
        ("from .skills import f", "from .skills import f"),
        ("import skillset", "import skillset"),
        ("x = 'ü'; import skills; skills.f", "x = 'ü'; import skills; __skill_f__"),
    ],
)
def test_imports_are_rewritten_in_place(source: str, expected: str) -> None:
    assert linked(source) == expected


def test_no_line_moves() -> None:
    source = "from skills import (f,\n\n  save)  # why\nimport skills\n(skills\n  .f(\n1))\nlast"

    rewritten = linked(source)

    assert ast.parse(rewritten)
    assert rewritten.count("\n") == source.count("\n")
    assert rewritten.split("\n")[-1] == "last"


def test_what_is_not_there_is_told_with_its_line() -> None:
    source = (
        "import skills\nfrom skills import no, save\nskills.nope()\nskills.save()\nskills.grp.z"
    )
    tree = ast.parse(source)

    missing = link(source, list(ast.walk(tree)), KINDS.get).missing

    assert sorted(missing) == [(2, "no"), (3, "nope"), (5, "grp.z")]


@pytest.mark.parametrize(
    "body",
    [
        "TEXT = '''a\n  b\n'''\ndef f():\n    return TEXT",
        "def f():\n\treturn f'''\n{1 +\n1}\n'''",
        "VALUES = [\n1,\n2]\ndef f():\n    return VALUES, (\n3)",
        "n = 0\ndef f():\n    global n, m\n    n += 1\n    m = n\n    return m",
        "def g(x):\n    return x and g(x - 1)\ndef f():\n    return g(3)",
        "if __name__ == '__main__':\n    raise SystemExit\ndef f():\n    return __name__",
        "class A:\n    b = 1\n    def c(self):\n        return A.b\ndef f():\n    return A().c()",
        "from __future__ import annotations\ndef f(a: Nope = 1) -> Nope:\n    return a",
        "import math as m\nfrom math import (\npi,\n)\ndef f():\n    return m.floor(pi)\n# end",
        "def f():\n    return 'x\\\ny'",
        "global n\nn = 1\ndef f():\n    return n",
    ],
)
def test_a_skill_in_its_own_function_does_as_it_does_alone(body: str) -> None:
    alone: dict[str, object] = {"__name__": "skills.f"}
    exec(body, alone)
    program = "from __future__ import annotations\n" + definition("f", body, ast.parse(body))
    inside: dict[str, object] = {}
    exec(program, inside)

    assert inside["__skill_f__"]() == alone["f"]()  # type: ignore[operator]
    assert inside.keys() - {"__builtins__", "annotations"} == {"__skill_f__"}


def test_lines_of_a_skill_are_one_further_down_in_its_definition() -> None:
    for strings, ends in product(("'''a\nb'''", "1"), ("", "\n", "\n\n# c")):
        source = f"x = {strings}\ndef f():\n    return x{ends}"
        lines = definition("f", source, ast.parse(source)).split("\n")

        assert [line.strip() for line in source.split("\n")] == [
            line.strip() for line in lines[1 : 1 + len(source.split("\n"))]
        ]
