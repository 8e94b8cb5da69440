import random
import time

import pytest

from toolfold.privacy.detect import Detectors, find
from toolfold.privacy.detectors.credentials import CredentialDetector
from toolfold.privacy.detectors.custom import CustomDetector
from toolfold.privacy.spans import Span, merge

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIBOgIBAAJBAKj34GkxFhD9\n-----END RSA PRIVATE KEY-----"


def found(text: str) -> list[tuple[str, str]]:
    return [(span.kind, text[span.start : span.end]) for span in find(text)]


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("EMAIL", "ada@example.org"),
        ("EMAIL", "ada.king+news@mail.example.co.uk"),
        ("EMAIL", "o'brien@example.ie"),
        ("EMAIL", "jörg@exämple.de"),
        ("EMAIL", "ada%40example.org"),
        ("PHONE", "+44 7700 900123"),
        ("PHONE", "+41 (0)62 585 51 90"),
        ("PHONE", "(555) 123-4567"),
        ("PHONE", "415-555-2671 ext. 12"),
        ("PHONE", "345-899-3560x4587"),
        ("PHONE", "01.84.17.61.18"),
        ("PHONE", "020 7946 0958"),
        ("PHONE", "001-518-640-0854"),
        ("CARD", "4111 1111 1111 1111"),
        ("CARD", "4111-1111-1111-1111"),
        ("CARD", "378282246310005"),
        ("CARD", "3782 822463 10005"),
        ("CARD", "30569309025904"),
        ("CARD", "8122926219308162"),
        ("IBAN", "GB82WEST12345698765432"),
        ("IBAN", "DE89 3704 0044 0532 0130 00"),
        ("IBAN", "gb82west12345698765432"),
        ("IP", "203.0.113.7"),
        ("IP", "2001:db8::8a2e:370:7334"),
        ("IP", "::ffff:203.0.113.7"),
        ("MAC", "00:1A:2b:3C:4d:5E"),
        ("MAC", "00-1A-2B-3C-4D-5E"),
        ("LOGIN_URL", "postgres://app:s3cr3t@db.internal:5432/main"),
        ("LOGIN_URL", "https://user:p@ss@example.org/x?y=1"),
        ("API_KEY", "AKIAIOSFODNN7EXAMPLE"),
        ("API_KEY", "ghp_" + "a1B2" * 9),
        ("API_KEY", "sk-ant-api03-" + "a1B2" * 6),
        ("API_KEY", "xoxb-123456789012-abcdefGHIJKL"),
        ("API_KEY", "AIza" + "a1B2c" * 7),
        ("API_KEY", "sk_live_" + "a1B2" * 6),
        ("API_KEY", "glpat-" + "a1B2" * 5),
        ("JWT", JWT),
        ("PRIVATE_KEY", PEM),
    ],
)
def test_what_is_personal_is_found_whole(kind: str, written: str) -> None:
    for text in (written, f"See {written}, please.", f'"{written}"', f"x: ({written})\n"):
        assert (kind, written) in found(text), text


@pytest.mark.parametrize(
    "text",
    [
        "call me at 467 3395",
        "Phone: 9472 7916",
        "Tel. 5403926876",
        "phone:5403926876",
        "28-64-66-98 office",
        "Telefon 72 128 827",
        "fax: 47/422 7875",
        "Mobil (27)/928-7757",
        "call 06-21/930 8161",
    ],
)
def test_a_number_is_a_phone_where_words_say_so(text: str) -> None:
    assert [kind for kind, _ in found(text)] == ["PHONE"]


@pytest.mark.parametrize(
    "text",
    [
        "rows 467 3395",
        "order 1234567890, call us",
        "call on 2024-01-02 10:30:00",
        "it rang on 01.02.2023",
        "1700000000000 ms",
        "ISBN 978-3-16-148410-0",
        "$1 234 567",
        "3.14159265358979",
        "4111 1111 1111 1112",
        "GB83WEST12345698765432",
        "127.0.0.1 and 0.0.0.0 and ::1",
        "netmask 255.255.255.0",
        "version 1.2.3.4",
        "1.2.3.4.5",
        "x[1::2] a::b 12:30:45",
        "react@18.2.0 and user@host and @ada",
        "git@github.com:owner/name.git",
        "https://example.org:8080/path@2x.png",
        "550e8400-e29b-41d4-a716-446655440000",
        "password = get_password()",
        "token = self.peek()",
        "tokens: list[Token]",
        'token = answer.get("access_token")',
        'TOKENIZER_SHA256 = "71a31309bdd802f1"',
        "token: str, secret: $SECRET, max_tokens: 4096000",
        "a basic understanding of bearer bonds",
        "--password $PASSWORD --token-limit 40000 --pass",
        "see --password and --api-key in the manual",
        "https://example.org/?signature=none&design=1234567890abcdef",
    ],
)
def test_what_only_resembles_personal_data_is_left(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("password: hunter2x", "hunter2x"),
        ("password: pa55(word", "pa55(word"),
        ('{"api_key": "0123-4567"}', "0123-4567"),
        ("DB_PASSWORD=s3cr3t-s3cr3t", "s3cr3t-s3cr3t"),
        ("Authorization: Bearer abcdef0123456789abcdef", "abcdef0123456789abcdef"),
        ("https://example.org/?token=abcdef123456&y=1", "abcdef123456"),
        ("mysql --user app --password hunter2x -e 1", "hunter2x"),
        ("vault --auth-token 's3cr3t s3cr3t'", "s3cr3t s3cr3t"),
        (f"https://b.example.org/a?X-Amz-Signature={'0f' * 32}&x=1", "0f" * 32),
        (f"https://b.example.org/a?sv=2024&sig={'aB3' * 14}%3D", f"{'aB3' * 14}%3D"),
    ],
)
def test_what_is_named_a_secret_is_one(text: str, secret: str) -> None:
    assert found(text) == [("SECRET", secret)]


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("EMAIL", "ada@example.org"),
        ("CARD", "4111111111111111"),
        ("CARD", "4111-1111-1111-1111"),
        ("IBAN", "GB82WEST12345698765432"),
        ("US_SSN", "078-05-1120"),
        ("ES_DNI", "12345678Z"),
        ("IP", "203.0.113.7"),
        ("PHONE", "+49 30 1234567"),
        ("PHONE", "415-555-2671"),
    ],
)
@pytest.mark.parametrize(
    "around",
    ["7,{},42", "[1,{},2]", "name;{};9", "x:{}", r"a\n{}\tb", "?q=%20{}%0A", "{},{}"],
)
def test_what_stands_in_a_row_of_a_table_behind_a_label_or_an_escape_is_found(
    kind: str, written: str, around: str
) -> None:
    assert found(around.replace("{}", written)) == [(kind, written)] * around.count("{}")


@pytest.mark.parametrize(
    "text",
    [
        "see section 3.2.1.4",
        "pkg==1.2.3.4",
        "Chrome/12.0.3.4",
        "bad::cafe()",
        "at +52.520008 +13.404954",
        "delta +9593285 bytes",
        "Smith (1954) 69-310",
        "Springfield 04670-7130",
        "called 4801227 times",
        "lodash@4.17.21.tgz",
        "3530 3884 6837 3663 1069 3842 6275 4375",
        "The password is wrong: try again",
    ],
)
def test_numbers_of_other_sorts_are_left(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("PHONE", "phoneNumber=4155552671"),
        ("PHONE", "Tél : 21 16 45 70"),
        ("PHONE", "M: 6401 3990"),
        ("PHONE", "Tel. 030 / 519135"),
        ("PHONE", "tel.+49 30 1234567"),
        ("PHONE", "our support line 020 7946 0958"),
        ("PHONE", "office/+49 30 1234567"),
        ("IP", "addr:2001:db8::1793"),
        ("UK_NHS", "nhs_number,9434765919"),
        ("SECRET", "Passwort: geheim123"),
        ("SECRET", "my password is hunter2"),
        ("API_KEY", "glpat-" + "Abcde" * 4),
        ("API_KEY", "https://hooks.slack.com/services/T0/B0/" + "x" * 24),
        ("LOGIN_URL", "postgres://app:p%23w%20d@db/main"),
    ],
)
def test_other_words_and_ways_of_writing_are_known(kind: str, text: str) -> None:
    assert [each for each, _ in found(text)] == [kind]


def test_two_phones_that_a_stroke_joins_are_both_found() -> None:
    assert found("+49 30 1234567/+49 171 2345678") == [
        ("PHONE", "+49 30 1234567"),
        ("PHONE", "+49 171 2345678"),
    ]


def test_a_private_key_that_was_cut_off_is_found_to_its_end() -> None:
    assert found(PEM[:50]) == [("PRIVATE_KEY", PEM[:50])]


def test_overlapping_places_become_one_that_covers_all() -> None:
    spans = [Span("B", 5, 12), Span("A", 0, 6), Span("C", 20, 25), Span("D", 20, 25)]

    assert merge(spans, "ABDC".index) == [Span("B", 0, 12), Span("D", 20, 25)]
    assert merge(reversed(spans), "ABDC".index) == merge(spans, "ABDC".index)


def test_a_pattern_of_the_user_comes_before_the_built_in_ones() -> None:
    detectors = Detectors([CustomDetector("STAFF", r"\bE-\d{6}\b|\d{3}-\d{2}-\d{4}")])
    text = "E-123456 has 078-05-1120"

    assert [span.kind for span in detectors.find(text)] == ["STAFF", "STAFF"]
    assert detectors.kinds[0] == "STAFF"


HOSTILE = [
    *(
        "1",
        "1 ",
        "12 34 ",
        "123-45-",
        "4111111111111112 ",
        "4111 1111 1111 1112 ",
        "0 12 34 56 78 ",
    ),
    *(
        "@",
        "a@",
        "a@a.",
        "a.",
        "a-",
        "a%40",
        ".@",
        "eyJ",
        "eyJaaaaaaaa.",
        "sk-",
        "SG.aaaaaaaaaaaaaaaa.",
    ),
    *("://a:", "://", ":", "a:b:", "1.1.", "GB12 ", "GB12", "password=", 'password="', "token: '"),
    *("--", "--a-", "--password ", "--a-a-a-pass ", "?sig=", "&x-a-sig=aaaaaaaaaaaaaaaa"),
    *(
        "-----BEGIN PRIVATE KEY-----",
        "+",
        "(",
        "(1)",
        "+1 ",
        "A9",
        "AA 99 ",
        "bearer ",
        "-",
        "=",
        "a=",
    ),
    *(
        "[EMAIL_1",
        "[EMAIL_1]",
        "phone 1234567,",
        "ssn 078051120 ",
        "ab:cd:",
        "1x",
        " ",
        "a",
        "\u00e9",
    ),
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_text_takes_time_in_proportion_to_its_length(unit: str) -> None:
    """Ten times the text may take ten times the time and a half, not a hundred times."""
    short, long = (unit * (size // len(unit)) for size in (4_000, 40_000))
    find(short)

    ratio = min(seconds(long) / seconds(short) for _ in range(5))

    assert ratio < 25


def test_random_digits_and_signs_are_read_in_linear_time() -> None:
    chance = random.Random(7)
    marks = "0123456789 -.()+@:/aA_=\n"
    short = "".join(chance.choices(marks, k=4_000))
    long = "".join(chance.choices(marks, k=40_000))

    assert min(seconds(long) / seconds(short) for _ in range(5)) < 25


def seconds(text: str) -> float:
    started = time.process_time_ns()
    find(text)
    return max(time.process_time_ns() - started, 1_000)


def test_no_detector_is_asked_about_text_that_cannot_hold_anything() -> None:
    """What the quick look says no to, no detector may find."""
    chance = random.Random(11)
    marks = "abcXYZ ,.;!?-_/()[]{}'\"#%&*+<>\n"
    for _ in range(300):
        text = "".join(chance.choices(marks, k=200))
        assert Detectors().find(text + ":") == []
    assert CredentialDetector().find(PEM.replace("IB", "xx"))


@pytest.mark.parametrize(
    ("kind", "text"),
    [("CARD", "my card 060469474229"), ("IBAN", "My IBAN is GB72PJPW6629944746054")],
)
def test_an_unusual_number_with_right_check_digits_needs_a_word(kind: str, text: str) -> None:
    number = text.split()[-1]

    assert found(text) == [(kind, number)]
    assert found(f"see {number}") == []
