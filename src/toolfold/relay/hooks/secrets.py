"""Take secrets out of a text before it is remembered. Pure."""

import re
from functools import cache

REMOVED = "[secret removed]"

# So much is read beyond what is kept, since blanks and secrets make it shorter.
_SPARE = 4_000
_WRITTEN = "".join(map(chr, range(0x21, 0x7F)))

# Keys whose form gives them away.
_FORMS = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    r"\b(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{16}\b",
    r"\bgh[opsur]_[A-Za-z0-9]{20,255}",
    r"\bgithub_pat_[A-Za-z0-9_]{20,255}",
    r"\bgl(?:pat|dt|rt|ptt|cbt)-[A-Za-z0-9_-]{16,255}",
    r"\bsk-[A-Za-z0-9_-]{16,255}",
    r"\b(?:sk|rk|pk|whsec)_(?:live|test)_[A-Za-z0-9]{10,255}",
    r"\bwhsec_[A-Za-z0-9+/=]{16,255}",
    r"\bxox[a-z]-[A-Za-z0-9-]{10,255}",
    r"\bxapp-[0-9]-[A-Za-z0-9-]{10,255}",
    r"\bhttps://hooks\.slack\.com/services/[A-Za-z0-9/]{10,255}",
    r"\bAIza[0-9A-Za-z_-]{35}",
    r"\bya29\.[0-9A-Za-z_-]{20,1000}",
    r"\bGOCSPX-[0-9A-Za-z_-]{20,255}",
    r"\bnpm_[A-Za-z0-9]{30,255}",
    r"\bpypi-[A-Za-z0-9_-]{30,1000}",
    r"\bhf_[A-Za-z0-9]{20,255}",
    r"\bdop_v1_[a-f0-9]{40,255}",
    r"\bSG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,255}",
    r"\bSK[0-9a-f]{32}\b",
    r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}\b",
    r"\bage-secret-key-1[a-z0-9]{50,80}\b",
    r"\btf_[0-9a-f]{8}_[A-Za-z0-9_-]{43}",
    r"\beyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,8000}(?:\.[A-Za-z0-9_-]{0,4000})?",
)

# What stands behind a word that says what it is.
_SCHEME = r"\b(bearer|basic|token)(\s+)([A-Za-z0-9._~+/=-]{12,4000})"
# Whatever people write there unescaped; but digits before a slash are a port.
_IN_URL = (
    r"\b([a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,200}:)"
    r"(?![0-9]{1,5}[/?#])([^\s@]{1,500}(?:@[^\s/@\"']{0,100}(?=@)){0,5})(@)"
)
_IN_HEADER = r"""
        \b(authorization["']?\s{0,3}[:=]\s{0,3}["']?(?:basic|bearer|token|digest|negotiate)\s{1,3})
        [^\s"']{4,4000}
      | \b((?:set-)?cookie["']?\s{0,3}:\s{0,3}["']?)[^\s=;,"']{1,100}=[^\n"']{1,4000}"""
# Not the numbers that other programs have there: `docker run -u 1000:1000`.
_FOR_CURL = (
    r"((?<!\S)(?:-u\s{0,3}|--(?:proxy-)?user[\s=]\s{0,3})[\"']?[^\s:\"']{1,100}:)"
    r"(?![0-9]{1,10}(?![^\s\"']))([^\s\"']{1,500})"
)
_IN_QUERY = (
    r"([?&](?:[a-z_-]{0,20}(?:token|key|secret|password|sig|signature))=)([^&\s#\"']{6,2000})"
)
_NAMED = r"""
        (?P<name>[A-Za-z0-9_.-]{0,40}(?:passw(?:or)?d|passwd|passphrase|pwd|secret|api[_-]?key|apikey
        |access[_-]?key|account[_-]?key|private[_-]?key|auth[_-]?token|access[_-]?token
        |refresh[_-]?token|session[_-]?token|client[_-]?secret|credentials?|token)[A-Za-z0-9_]{0,20}
        ["']?\s{0,3}(?:=|:=|:|=>|\bis\b)\s{0,3})
        (?P<value>"[^"\n]{4,2000}"|'[^'\n]{4,2000}'|[^\s"',;)}\]]{6,2000})"""
# A value that is no secret: a variable that holds it, a type, a word of code.
_HARMLESS = r"""
        ["']?(?:\$\{?\w+\}?|%\w+%|<[^>]*>|\{\{.*|os\.\w+.*|process\.env.*|env\.\w+|None|null
        |true|false
        |undefined|string|required|optional|\w+\(.*|\*+|\.{3}|x{3,}|\[secret\ removed\]?)["']?"""


class _Patterns:
    """The same, ready to be used; making them takes longer than most texts do."""

    def __init__(self) -> None:
        case, verbose = re.IGNORECASE, re.IGNORECASE | re.VERBOSE
        self.key = re.compile("|".join(f"(?:{form})" for form in _FORMS), re.DOTALL | case)
        self.scheme = re.compile(_SCHEME, case)
        self.in_url = re.compile(_IN_URL, case)
        self.in_header = re.compile(_IN_HEADER, verbose)
        self.for_curl = re.compile(_FOR_CURL)
        self.in_query = re.compile(_IN_QUERY, case)
        self.named = re.compile(_NAMED, verbose)
        self.harmless = re.compile(_HARMLESS, verbose)


@cache
def _patterns() -> _Patterns:
    return _Patterns()


def without_secrets(text: str) -> str:
    """Return a text in which what looks like a secret is replaced."""
    known = _patterns()
    text = known.key.sub(REMOVED, text)
    text = known.in_url.sub(rf"\1{REMOVED}\3", text)
    text = known.in_header.sub(lambda found: f"{found[1] or found[2]}{REMOVED}", text)
    text = known.for_curl.sub(rf"\1{REMOVED}", text)
    text = known.scheme.sub(_after_scheme, text)
    text = known.in_query.sub(rf"\1{REMOVED}", text)
    return known.named.sub(_after_name, text)


def beginning_without_secrets(text: str, most: int) -> str:
    """Return a text, or the beginning of a long one, with what looks like a secret replaced.

    The beginning ends with an ellipsis, and is longer than `most` unless blanks or secrets fill it.
    What may be half a secret at its end is left out.
    """
    if len(text) <= most + _SPARE:
        return without_secrets(text)
    head = text[: most + _SPARE].rstrip(_WRITTEN)
    # What is quoted may be cut as well, and is known for a secret by its end.
    return without_secrets(f"{head}\"'").rstrip("\"'") + "…"


def _after_scheme(found: "re.Match[str]") -> str:
    word, space, value = found.groups()
    # "basic understanding" is no header: what is has digits or signs in it.
    if value.isalpha():
        return found[0]
    return f"{word}{space}{REMOVED}"


def _after_name(found: "re.Match[str]") -> str:
    if _patterns().harmless.fullmatch(found["value"]):
        return found[0]
    # "the password is required": of words, only those that are quoted are taken for the secret.
    is_word = found["value"].rstrip(".!?").isalpha()
    if is_word and found["name"].rstrip().endswith(("is", "IS", ":")):
        return found[0]
    return f"{found['name']}{REMOVED}"
