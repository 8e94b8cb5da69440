"""A query is read for what it wants: files become what they are, tasks fall into steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold.catalog.search.lexical import intent, steps


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("save it to /home/ada/talk.pptx.", "save it to PowerPoint presentation."),
        ("read ~/notes/today.md and ./a/b.csv", "read Markdown file and CSV file"),
        ("read report.final.docx, please", "read Word document, please"),
        (r"open C:\Users\ada\plan.xlsx", "open Excel spreadsheet"),
        ("what is in /srv/music/", "what is in folder"),
        ("run /opt/tools/start.sh", "run file"),
        ("see https://www.arxiv.org/abs/2203.1, then stop", "see arxiv web page, then stop"),
        ("read https://docs.example.com/a.pdf. Then go", "read docs example web page. Then go"),
        ("what is this? " + "QUJD" * 400, "what is this?"),
    ],
)
def test_a_path_becomes_the_kind_of_the_file_and_an_address_its_host(
    query: str, wanted: str
) -> None:
    assert intent(query) == wanted


@pytest.mark.parametrize(
    "query",
    [
        "github.create_issue",
        "convert EUR/USD and/or 24/7",
        "write Next.js code for /login",
        "version 1.2.3 of vercel/ai",
        "Ends here. Starts there",
        "x" * 70,
    ],
)
def test_what_is_no_file_stays(query: str) -> None:
    assert intent(query) == query


@given(st.text(alphabet="/\\.-:a ~", max_size=2_500))
def test_any_query_is_read_in_time(query: str) -> None:
    assert len(intent(query)) <= 2_500


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("open an issue", []),
        ("find a flight, please", []),
        (
            "Find the paper on arXiv. Then read it aloud, and send me the summary",
            ["Find the paper on arXiv", "read it aloud", "send me the summary"],
        ),
        ("get the weather of v1.2 today and book the 10:30 train", None),
    ],
)
def test_a_task_falls_into_steps_of_three_words_or_more(
    query: str, parts: list[str] | None
) -> None:
    expected = ["get the weather of v1.2 today", "book the 10:30 train"] if parts is None else parts

    assert steps(query) == expected


def test_a_task_has_at_most_six_steps() -> None:
    assert len(steps("do this thing, " * 20)) == 6
