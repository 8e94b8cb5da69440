import pytest

from toolfold.errors import BadInput
from toolfold.skills.models import folders_of, parse_name, symbol_of


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("weekly_report", "weekly_report"),
        ("weekly-report", "weekly_report"),
        ("memory/backup-all", "memory.backup_all"),
        ("skills.memory.backup_all", "memory.backup_all"),
        ("email.digest", "email.digest"),
        ("a/b/c/d", "a.b.c.d"),
    ],
)
def test_names_are_understood_as_code_and_as_folders_have_them(text: str, name: str) -> None:
    assert parse_name(text) == name
    assert parse_name("/".join(folders_of(name))) == name


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "..", "../x", "/etc/x", "x/../y", "x//y", "a.b.c.d.e", "~", "x\0", "x\n"),
        *("__init__", "_x", "x_", "x__y", "X", "é", "1x", "x" * 65, "x y", "-x", "C:x"),
        *("os", "json", "print", "list", "class", "import", "lambda", "None"),
        *("save", "search", "show", "delete", "save.x", "import.x", "x.import"),
    ],
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="cannot be called"):
        parse_name(text)


def test_no_two_skills_are_called_the_same_in_the_interpreter() -> None:
    assert symbol_of("a.b_c") != symbol_of("a_b.c") != symbol_of("a_b_c")
