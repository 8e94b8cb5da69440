import pytest

from toolfold.errors import BadInput
from toolfold.skills.extract import definition_in

PROGRAM = '''
import github, skills
import re
from collections import Counter, defaultdict
LIMIT = 3; OTHER = 4
PATTERN: object = re.compile("x")
rows = github.list_issues()

def unrelated():
    return rows

class Row:
    size = LIMIT

# A comment of nobody.
def helper(row):
    """Text
  as it is."""
    return Counter(row)[LIMIT], Row  # why

@wrapped
def report(days, rows=None):
    """Doc."""
    rows = github.list_issues()
    return [helper(each) for each in rows if PATTERN.match(each)]

skills.save("report", "report", "x")
'''


def test_a_function_takes_what_it_needs_and_nothing_else() -> None:
    source = definition_in([PROGRAM], "report")

    assert source == (
        "import github\nimport re\nfrom collections import Counter\n\n"
        'LIMIT = 3\nPATTERN: object = re.compile("x")\n\n\n'
        "class Row:\n    size = LIMIT\n\n\n"
        'def helper(row):\n    """Text\n  as it is."""\n'
        "    return Counter(row)[LIMIT], Row  # why\n\n\n"
        '@wrapped\ndef report(days, rows=None):\n    """Doc."""\n'
        "    rows = github.list_issues()\n"
        "    return [helper(each) for each in rows if PATTERN.match(each)]\n"
    )


def test_a_variable_of_the_run_is_no_constant() -> None:
    with pytest.raises(BadInput, match=r"unrelated\(\) uses 'rows'"):
        definition_in([PROGRAM], "unrelated")


def test_later_programs_define_anew_what_earlier_ones_did() -> None:
    sources = ["def f():\n    return g()\ndef g():\n    return 1", "def g():\n    return 2"]

    assert definition_in(sources, "f") == "def f():\n    return g()\n\n\ndef g():\n    return 2\n"
    assert definition_in(sources, "h") is None
    assert definition_in(["x = 1", "this is no Python"], "x") is None
