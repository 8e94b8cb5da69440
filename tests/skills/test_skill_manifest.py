import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold.errors import BadInput
from toolfold.skills.manifest import check_description, new_manifest, parse_manifest

HEAD = "---\nname: weekly-report\n"


@pytest.mark.parametrize(
    ("written", "description"),
    [
        ("description: Report on the week.", "Report on the week."),
        ('description: "Report: the week # all of it"', "Report: the week # all of it"),
        ("description: 'It''s a report'  # mine", "It's a report"),
        ("description: >-\n  Report on\n  the week.", "Report on the week."),
        ("description: |\n  Report on\n  the week.", "Report on the week."),
        ("description: Report on\n  the week.", "Report on the week."),
        ("license: MIT\nallowed-tools: [Read, {a: b}]\ndescription: Report.", "Report."),
        ("metadata:\n  author: me\n  description: not this\ndescription: Report.", "Report."),
    ],
)
def test_descriptions_are_read_as_people_write_them(written: str, description: str) -> None:
    manifest = parse_manifest(f"{HEAD}{written}\n---\nBody\n")

    assert (manifest.name, manifest.description) == ("weekly-report", description)
    assert manifest.body == "Body\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# Report", "does not start with front matter"),
        (HEAD + "description: Report.", "does not start with front matter"),
        (HEAD + "---\n", "needs one line `description: ...`"),
        (HEAD + "description:\n---\n", "description in SKILL.md is empty"),
        (HEAD + "description: [a, b]\n---\n", "must be quoted"),
        (HEAD + "description: a: b\n---\n", "must be quoted"),
        (HEAD + 'description: "a\n---\n', "cannot be read"),
        (HEAD + "description: 'a' b\n---\n", "something follows"),
        (HEAD + "description: a\ndescription: b\n---\n", "needs one line"),
        (HEAD + f"description: {'x' * 1025}\n---\n", "at most 1,024"),
        (HEAD + "description: a\x1b[31mb\n---\n", "cannot be shown"),
        ("---\n- name\n---\n", "no field"),
    ],
)
def test_what_is_no_manifest_says_why(text: str, words: str) -> None:
    with pytest.raises(BadInput, match=words.replace("(", r"\(").replace("[", r"\[")):
        _ = parse_manifest(text).description


@given(st.text(max_size=200))
def test_every_description_that_is_taken_comes_back_from_the_file(text: str) -> None:
    try:
        description = check_description(text)
    except BadInput:
        return
    manifest = new_manifest("weekly-report", description, usage="from skills import weekly_report")

    assert parse_manifest(str(manifest)).description == description
    assert parse_manifest(str(manifest)).name == "weekly-report"


def test_a_new_description_leaves_what_people_wrote() -> None:
    text = f"{HEAD}license: MIT\ndescription: >\n  Old\n  text.\nmetadata:\n  a: b\n---\nBody\n"

    changed = str(parse_manifest(text).described("New: text"))

    assert changed == (
        f'{HEAD}license: MIT\ndescription: "New: text"\nmetadata:\n  a: b\n---\nBody\n'
    )
