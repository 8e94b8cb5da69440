"""What is remembered of a conversation holds no secrets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold.relay.hooks.secrets import REMOVED, beginning_without_secrets, without_secrets

# Put together here, so that no scanner takes this file for a leak.
LONG = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0"
SECRETS = {
    "AWS": "AKIA" + "IOSFODNN7EXAMPLE",
    "GitHub": "ghp_" + LONG[:36],
    "GitHub, fine-grained": "github_pat_" + LONG,
    "GitLab": "glpat-" + LONG[:20],
    "OpenAI": "sk-proj-" + LONG,
    "Anthropic": "sk-ant-api03-" + LONG,
    "Stripe": "sk_live_" + LONG[:24],
    "Slack": "xoxb-" + "123456789012-" + LONG[:24],
    "Slack webhook": "https://hooks.slack.com/services/T000/B000/" + LONG[:24],
    "Google": "AIza" + LONG[:35],
    "npm": "npm_" + LONG[:36],
    "PyPI": "pypi-" + LONG,
    "Hugging Face": "hf_" + LONG[:34],
    "SendGrid": "SG." + LONG[:22] + "." + LONG,
    "toolfold": "tf_0123abcd_" + LONG + "_-x",
    "JWT": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + LONG,
}


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize("around", ["use {} now", "'{}'", "KEY={}", "see ({}).", "{}"])
def test_keys_of_known_forms_go(kind: str, around: str) -> None:
    cleaned = without_secrets(around.format(SECRETS[kind]))

    assert REMOVED in cleaned
    assert LONG[:16] not in cleaned
    assert "IOSFODNN7" not in cleaned


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abc123.def456-ghi", "abc123.def456-ghi"),
        ("curl -H 'authorization: basic dXNlcjpwYXNzd29yZA=='", "dXNlcjpwYXNzd29yZA"),
        ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ('{"Authorization": "Basic YTpi"}', "YTpi"),
        ("curl -u admin:S3cr3t99 https://example.org", "S3cr3t99"),
        ("curl --user 'admin:S3cr3t99' x", "S3cr3t99"),
        ("Cookie: session=9f8e7d6c; theme=dark", "9f8e7d6c"),
        ("-H 'Set-Cookie: sid=abc; Path=/'", "abc"),
        ("postgres://ada:hunter2@db.example.org/app", "hunter2"),
        ("postgres://u:pa/ss@host", "pa/ss"),
        ("postgres://u:p@ss@host/db", "ss@"),
        ("https://ada:p%40ss$(x)@example.org", "p%40ss"),
        ("https://example.org/cb?code=1&access_token=q1w2e3r4t5", "q1w2e3r4t5"),
        ("password = 'correct horse battery'", "correct horse battery"),
        ('{"db_password": "s3cr3t!x"}', "s3cr3t!x"),
        ("export API_KEY=9f8e7d6c5b4a", "9f8e7d6c5b4a"),
        ("aws_secret_access_key: wJalrXUtnFEMI/K7MDENG", "wJalrXUtnFEMI"),
        ("client-secret: 'x9Y8z7W6v5'", "x9Y8z7W6v5"),
        ("my password is hunter2-x", "hunter2-x"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----", "MIIE"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk", "b3BlbnNzaC1rZXk"),
    ],
)
def test_what_stands_where_a_secret_stands_goes(text: str, secret: str) -> None:
    cleaned = without_secrets(text)

    assert secret not in cleaned
    assert REMOVED in cleaned


@pytest.mark.parametrize(
    "text",
    [
        "Set the password from ${DB_PASSWORD} and go on.",
        "password = os.environ['DB_PASSWORD']",
        "The token is required.",
        "a basic understanding of tokens",
        "commit 3f9a2c1e5d7b8a6c4e2f1a0b9c8d7e6f5a4b3c2d is the last good one",
        "see https://example.org/path:8080/a@b",
        "def token(self) -> str:",
        "see https://example.org:8080/a@b",
        '{"url": "https://example.org:8080", "to": "a@b"}',
        "docker run -u 1000:1000 image",
        "The cookie: it needs SameSite.",
        "Authorization: see below",
        "key: value",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert without_secrets(text) == text


@given(st.text(), st.sampled_from(sorted(SECRETS)), st.text())
def test_no_text_around_it_saves_a_key(before: str, kind: str, after: str) -> None:
    cleaned = without_secrets(f"{before} {SECRETS[kind]} {after}")

    assert SECRETS[kind] not in cleaned


@pytest.mark.parametrize(
    "piece",
    [
        "password",
        "a:",
        "eyJ",
        "-----BEGIN ",
        "https://a:",
        "token = ",
        "-u a",
        "cookie: a",
        "x://a:@",
    ],
)
def test_a_long_text_takes_no_longer_than_its_length(piece: str) -> None:
    without_secrets(piece * (64_000 // len(piece)))  # or the test's time limit ends it


@pytest.mark.parametrize(
    "secret", [SECRETS["JWT"], f'password = "{"correct horse " * 5}"', "password='a b c d e f'"]
)
def test_where_a_long_text_is_cut_no_half_of_a_secret_stays(secret: str) -> None:
    for length in range(4_000, 4_200):
        text = f"{'word ' * (length // 5)}{'x' * (length % 5)} {secret} and so on" + " more" * 99
        cleaned = beginning_without_secrets(text, 100)

        assert "eyJ" not in cleaned
        assert "horse" not in cleaned
        assert "a b" not in cleaned
        assert cleaned.startswith("word word ")


def test_of_a_long_text_only_the_beginning_is_searched() -> None:
    text = "word " * 1_000_000

    assert len(beginning_without_secrets(text, 240)) < 5_000
    assert beginning_without_secrets("x" * 100_000, 240) == "…"
    assert beginning_without_secrets("漢字" * 50_000, 240).startswith("漢字漢字")
