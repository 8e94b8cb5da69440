"""Find what opens doors: keys of vendors, private keys, tokens, passwords. Pure."""

import re
import string
from collections.abc import Iterable, Iterator
from typing import Final

from toolfold.privacy.spans import Span, candidates

# Only a long word can be a key; within such words the forms are looked for.
_LONG_WORD: Final = re.compile(r"[\w.-](?<![\w.-].)[\w.:-]{15,}+", re.DOTALL)
_VENDOR_FORMS: Final = (
    r"A(?:KIA|SIA|ROA|IDA)[0-9A-Z]{16}(?![0-9A-Za-z])",  # AWS
    r"AIza[\w-]{35}",  # Google
    r"ya29\.[\w-]{20,1000}",
    r"GOCSPX-[\w-]{20,100}",
    r"gh[opsur]_[A-Za-z0-9]{20,255}",  # GitHub
    r"github_pat_\w{20,255}",
    r"gl(?:pat|dt|rt|ptt|cbt|soat|ft)-[\w-]{16,255}",  # GitLab
    r"sk-[\w-]{16,255}",  # OpenAI, Anthropic and those who do as they do
    r"(?:xai|gsk|pplx|r8|hf|fw|nvapi)[_-][A-Za-z0-9]{20,255}",  # models
    r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,255}",  # Stripe
    r"whsec_[A-Za-z0-9]{16,255}",
    r"xox[a-z]-[A-Za-z0-9-]{10,255}",  # Slack
    r"xapp-[0-9]-[A-Za-z0-9-]{10,255}",
    r"npm_[A-Za-z0-9]{30,255}",  # package registries
    r"pypi-[\w-]{30,1000}",
    r"dckr_pat_[\w-]{20,100}",
    r"dop_v1_[a-f0-9]{40,100}",  # clouds
    r"dapi[a-f0-9]{32}(?:-\d)?(?![0-9a-z])",
    r"hvs\.[\w-]{20,300}",
    r"nfp_[A-Za-z0-9]{30,100}",
    r"SG\.[\w-]{16,64}\.[\w-]{16,255}",  # mail and messages
    r"key-[0-9a-f]{32}(?![0-9a-z])",
    r"[0-9a-f]{32}-us[0-9]{1,2}(?![0-9a-z])",
    r"xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}",
    r"(?:SK|AC)[0-9a-f]{32}(?![0-9a-z])",
    r"[0-9]{8,10}:AA[\w-]{33}",
    r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",  # shops
    r"sq0[a-z]{3}-[\w-]{22,50}",
    r"EAAA[\w-]{60,255}",
    r"ATATT3x[\w-]{30,300}",  # workplaces
    r"(?:ntn|secret)_[A-Za-z0-9]{40,60}",
    r"lin_api_[A-Za-z0-9]{40}",
    r"figd_[\w-]{30,100}",
    r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}",
    r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}",
    r"sntry[su]_[\w-]{30,300}",
    r"glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}",
    r"AGE-SECRET-KEY-1[0-9A-Z]{50,70}",
    r"tf_[0-9a-f]{8}_[\w-]{43}",  # ours
)
_VENDOR_KEY: Final = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_VENDOR_FORMS)})")
_WEBHOOK: Final = re.compile(
    r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/-]{20,200}"
    r"|discord(?:app)?\.com/api/webhooks/[0-9]{10,25}/[\w-]{40,100}"
)
_JWT: Final = re.compile(r"eyJ(?<![\w-]eyJ)[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+){0,3}")

_PEM: Final = re.compile(r"-----BEGIN (?P<label>[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----")
_PEM_CHARS: Final = 20_000

# A password may hold anything but blanks and quotes; the last @ before the host ends it.
_LOGIN_URL: Final = re.compile(
    r"://(?P<login>[^\s/?#@:\"'<>]{0,256}:[^\s/?#\"'<>@]{1,512}(?:@[^\s/?#\"'<>@]{1,256}(?=@))?)@"
    r"[^\s\"'<>]{1,2000}"
)
_SCHEME_MARKS: Final = string.ascii_letters + string.digits + "+.-"
_SCHEME_CHARS: Final = 20
_PUNCTUATION: Final = ".,;:!?)]}"


def _any_of(words: Iterable[str]) -> str:
    """Return a pattern for words in any case that the engine looks for by their first letters."""
    rests: dict[str, list[str]] = {}
    for word in words:
        rest = re.sub("[a-z]", lambda mark: f"[{mark[0].upper()}{mark[0]}]", word[1:])
        rests.setdefault(f"{word[0].upper()}{word[0]}", []).append(rest)
    branches = (f"(?<=[{first}])(?:{'|'.join(each)})" for first, each in rests.items())
    return f"[{''.join(rests)}](?:{'|'.join(branches)})"


_NAMES: Final = (
    *("password", "passwd", "passphrase", "pwd", "secret", "token", "credential"),
    *("api_?-?key", "access_?-?key", "account_?-?key", "private_?-?key"),
    *("passwort", "kennwort", "wachtwoord", "mot de passe", "contraseña", "senha", "пароль"),
)
_VALUE: Final = (
    r"(?:\"(?P<double>[^\"\n]{4,2000}+)\"|'(?P<single>[^'\n]{4,2000}+)'"
    r"|(?P<bare>[^\s\"',;)}\]<>&]{6,2000}+))"
)
_NAMED: Final = re.compile(
    rf"{_any_of(_NAMES)}"
    r"[sS]?(?:_[A-Za-z0-9_]{0,20}|[0-9]{1,3})?[\"']?\s{0,3}(?:=>|:=|[:=](?!=)|is\s)\s{0,3}"
    rf"{_VALUE}"
)
_SCHEME: Final = re.compile(
    rf"{_any_of(('bearer', 'basic', 'authorization'))}"
    r"(?::\s{0,3}|\s{1,3})(?:(?:[Tt]oken|[Dd]igest|[Nn]egotiate)\s{1,3})?"
    r"(?P<value>[A-Za-z0-9._~+/=-]{16,4000}+)"
)
# `--db-password hunter2`: a command line has no sign between the two.
_OPTION: Final = re.compile(
    r"--(?:[A-Za-z0-9]{1,20}-){0,3}"
    r"(?:pass(?:word|wd|phrase)?|pwd|secret|token|(?:api|access|private|secret)-?key)[ \t]{1,3}"
    rf"(?!-){_VALUE}"
)
# What makes a link open to whoever has it.
_SIGNATURE: Final = re.compile(
    r"[?&;](?:[Xx]-[A-Za-z]{2,10}-)?[Ss]ig(?:nature)?=(?P<value>[A-Za-z0-9%._~+/=-]{16,4000}+)"
)
# A value that is no secret: a variable that holds it, a type, a word of code.
_HARMLESS: Final = re.compile(
    r"\$\{?\w+\}?|%\w+%|\{\{.*|os\.\w+.*|process\.env.*|env\.\w+|\*+|\.{3}|x{3,}|[A-Za-z_.]+[:!?]?"
    r"|\[[A-Z_]+_[0-9.]+\]?",
    re.IGNORECASE,
)
# `token = self.peek(`: what follows a bare value, or ends it, shows that it is called or indexed.
_CALL: Final = re.compile(r"[A-Za-z_][\w.]*[(\[]")


class CredentialDetector:
    """Keys of common vendors, private keys, web tokens, named passwords, URLs with a login."""

    kinds = ("PRIVATE_KEY", "JWT", "API_KEY", "SECRET", "LOGIN_URL")

    def find(self, text: str) -> list[Span]:
        """Return what would let somebody else in."""
        found = list(_vendor_keys(text))
        if "-----BEGIN" in text:
            found += _private_keys(text)
        if "eyJ" in text:
            found += [Span("JWT", *match.span()) for match in _JWT.finditer(text)]
        if "hooks" in text:
            found += [Span("API_KEY", *match.span()) for match in _WEBHOOK.finditer(text)]
        if "://" in text:
            found += candidates(_LOGIN_URL, text, _login_url)
            found += [Span("SECRET", *match.span("value")) for match in _SIGNATURE.finditer(text)]
        found += _named(_NAMED, text)
        if "--" in text:
            found += _named(_OPTION, text)
        found += [
            Span("SECRET", *match.span("value"))
            for match in _SCHEME.finditer(text)
            if not match["value"].isalpha()
        ]
        return found


def _vendor_keys(text: str) -> Iterator[Span]:
    for word in _LONG_WORD.finditer(text):
        for match in _VENDOR_KEY.finditer(text, *word.span()):
            yield Span("API_KEY", *match.span())


def _private_keys(text: str) -> Iterator[Span]:
    """Yield keys with all of their lines; one that was cut off, as far as keys are long."""
    position = 0
    while match := _PEM.search(text, position):
        limit = match.end() + _PEM_CHARS
        mark = f"-----END {match['label']}-----"
        end = text.find(mark, match.end(), limit)
        position = end + len(mark) if end >= 0 else min(limit, len(text))
        yield Span("PRIVATE_KEY", match.start(), position)


def _named(form: re.Pattern[str], text: str) -> Iterator[Span]:
    for match in form.finditer(text):
        group = match.lastgroup or "bare"
        is_harmless = _is_bare_harmless(match) if group == "bare" else _is_reference(match[group])
        if not is_harmless:
            yield Span("SECRET", *match.span(group))


def _is_reference(value: str) -> bool:
    """Whether a value in quotes only says where the secret is."""
    return value.startswith(("$", "{{", "[", "<"))


def _is_bare_harmless(match: re.Match[str]) -> bool:
    """Whether a value is a reference to a secret, a word of code or a number of tokens."""
    value = match["bare"]
    is_number = match[0][0] in "tT" and value.strip("0123456789.,_") == ""
    following = match.string[match.end() : match.end() + 1]
    is_code = _CALL.match(value) and (value[-1] in "([" or following in tuple(")]}\"',"))
    return bool(is_number or is_code or _HARMLESS.fullmatch(value))


def _login_url(match: re.Match[str]) -> Span | None:
    before = match.string[max(0, match.start() - _SCHEME_CHARS) : match.start()]
    start = match.start() - len(before) + len(before.rstrip(_SCHEME_MARKS))
    return Span("LOGIN_URL", start, match.start() + len(match[0].rstrip(_PUNCTUATION)))
