"""Which fields of an answer hold personal data, by their keys and where they stand. Pure.

A rule conceals the whole value of a field, and all values below it. Keys are compared without case
and signs: `lastName`, `last_name` and `LAST-NAME` are one key. A path is matched from its end, so
`customer.name` is the name of every customer wherever customers stand; `$` at its beginning
stands for the whole answer, `*` for any one key, and `[]` for the items of a list, which may
also be left out.

`name` says little by itself: files, tools and branches have one. It counts as a person's where its
object is called after a person (`assignee`) or says more of one (an e-mail address, a phone).
Directly below such a word stands sometimes a name and sometimes a number or a handle: there it
counts if it is written like a full name.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple
from unicodedata import combining, normalize

from toolfold.errors import ConfigError
from toolfold.jsontypes import Json
from toolfold.privacy.spans import KIND

# The keys of personal fields and the words for persons, in several languages. Pure.
#
# Keys are written as `key_form` writes them: without case, accents and signs.


def _words(written: str) -> frozenset[str]:
    return frozenset(written.split())


# By the key as a whole, or by how it ends: `billing_street`, `owner_email`.
BY_KIND: Final[Mapping[str, str]] = {
    "NAME": """
        first_name firstname given_name givenname forename middle_name last_name lastname surname
        family_name familyname full_name fullname real_name maiden_name nickname nicknames
        legal_name from_name account_holder holder_name cardholder_name name_on_card billing_name
        shipping_name fname lname contact_person
        vorname nachname familienname geburtsname ansprechpartner prenom nom_de_famille nom_complet
        apellido apellidos nombre_completo nombres cognome sobrenome apelido nome_completo voornaam
        achternaam fornamn efternamn fornavn etternavn efternavn imie nazwisko jmeno prijmeni
        фамилия отчество фио 姓名 氏名 이름
    """,
    "EMAIL": """
        email emails e_mail mail email_address email_addresses mail_address reply_to
        correo correo_electronico courriel posta_elettronica
    """,
    "PHONE": """
        phone phones phone_number phone_numbers phone_no telephone telephone_number tel mobile
        mobile_number cell_phone cellphone fax fax_number contact_number whatsapp
        telefon telefonnummer telefonnr handynummer mobilnummer rufnummer telefono telefone movil
        celular telemovel telefoon telefoonnummer puhelin телефон
        电话 手机 手机号 電話 電話番号 전화
    """,
    "ADDRESS": """
        street street_address street_name street1 street2 street_line1 street_line2 address_line
        address_line1 address_line2 address_line_1 address_line_2 address1 address2 address_1
        address_2 line1 line2 mailing_address billing_address shipping_address delivery_address
        home_address work_address postal_address residential_address formatted_address
        full_address house_number
        strasse hausnummer anschrift rue calle domicilio straat gatuadress ulica rua logradouro
        улица
    """,
    "POSTAL_CODE": """
        postal_code postcode post_code zip zip_code zipcode postalcode
        plz postleitzahl code_postal codigo_postal cep postnummer kod_pocztowy 邮编
    """,
    "BIRTH_DATE": """
        birth_date birthdate date_of_birth dob birthday birth_day born_on
        geburtsdatum geburtstag date_de_naissance date_naissance fecha_de_nacimiento
        fecha_nacimiento data_di_nascita data_nascita data_de_nascimento data_nascimento
        geboortedatum fodelsedatum fodselsdato data_urodzenia 出生日期 生日
    """,
    "NATIONAL_ID": """
        ssn social_security_number social_security national_id national_id_number
        identity_number id_card_number passport passport_number passport_no driver_license
        drivers_license driver_license_number drivers_license_number license_plate tax_id
        tax_number taxpayer_id tin itin nino nhs_number cpf dni nie nif bsn aadhaar pesel curp
        codice_fiscale fiscal_code steuer_id personnummer
        ausweisnummer reisepass steuernummer sozialversicherungsnummer numero_securite_sociale
        pasaporte passeport passaporto 身份证 身份证号
    """,
    "CARD": "card_number credit_card credit_card_number cc_number cvv cvc security_code",
    "ACCOUNT": """
        iban account_number bank_account bank_account_number routing_number sort_code kontonummer
    """,
    "SECRET": """
        password passwd passphrase passcode password_value pwd secret client_secret api_key apikey
        access_token refresh_token auth_token id_token session_token bearer_token private_key
        secret_key access_key secret_access_key credentials pin_code otp
        passwort kennwort mot_de_passe contrasena senha wachtwoord пароль 密码
    """,
    "IP": "ip_address ip_addr client_ip remote_ip remote_addr source_ip",
    "MAC": "mac_address mac_addr",
}
# Somebody, and nothing else: also at the end of a key, `primary_contact`.
SURELY_PERSONS: Final = _words(
    """
    person people customer customers contact contacts patient patients employee employees guest
    guests student students teacher teachers passenger passengers recipient recipients sender
    senders author authors committer committers assignee assignees reporter reporters attendee
    attendees organizer organizers subscriber subscribers participant participants candidate
    candidates applicant applicants beneficiary spouse father mother doctor physician nurse buyer
    seller payer payee invitee invitees reviewer reviewers approver approvers requester requesters
    signer signers signatory witness witnesses speaker speakers instructor instructors cardholder
    kunde kunden kontakt mitarbeiter patienten empfaenger cliente clientes
    """
)
# Somebody, unless it is a program: by the whole key alone.
PERSONS: Final = SURELY_PERSONS | _words(
    """
    user users client clients member members driver drivers creator creators manager managers
    tenant_contact lead leads owner owners parent_contact created_by updated_by assigned_to
    modified_by requested_by approved_by reported_by
    """
)
# Where mail and parcels go: what is called `name` below may be somebody.
ADDRESSED: Final = frozenset(("from", "to", "cc", "bcc", "host", "shipping", "billing", "ship_to"))

NAME_KEYS: Final = _words(
    "name display_name displayname names person fullname nom nombre nome naam namn navn имя"
)
NAME_PARTS: Final = frozenset(("first", "middle", "last", "given", "family", "full"))
ADDRESS_KEYS: Final = _words(
    """
    address addresses location_address adresse direccion indirizzo adres endereco адрес 地址 住所
    주소
    """
)


def _by_key() -> dict[str, str]:
    keys = {f"{each}_name": "NAME" for each in PERSONS - {"user", "users"}}
    keys |= {f"{each}_address": "ADDRESS" for each in SURELY_PERSONS}
    return keys | {key: kind for kind, written in BY_KIND.items() for key in written.split()}


PERSONAL: Final[Mapping[str, str]] = _by_key()
"""The kind of each key."""

# Beside these keys, a name is a person's and an address is where they live.
TELLING: Final = frozenset(
    key for key, kind in PERSONAL.items() if kind in {"EMAIL", "PHONE", "NAME", "BIRTH_DATE"}
) | {"gender", "sex", "age", "nationality", "marital_status", "job_title"}
_STREETS: Final = frozenset(
    key for key, kind in PERSONAL.items() if kind in {"ADDRESS", "POSTAL_CODE"}
)
POSTAL: Final = _STREETS | ADDRESS_KEYS
"""Beside these, what is written like the name of a person is one."""
BESIDE_ADDRESSES: Final = (
    TELLING | NAME_KEYS | _STREETS | {"city", "country", "state", "town", "province"}
)


FieldPath = tuple[str, ...]
ITEM: Final = "[]"
_ROOT: Final = "$"
_MAX_KEY_CHARS: Final = 80
_MAX_FIELDS: Final = 10_000
_MAX_SIBLINGS: Final = 200
_FEWEST_PHONE_DIGITS: Final = 5
_FULL_NAME: Final = re.compile(
    r"[^\W\d_a-z][\w'\u2019.-]{0,40}(?: [^\W\d_][\w'\u2019.-]{0,40}){1,4}"
)

LIKELY_NAME: Final = "NAME?"
"""The kind below `assignee` and the like: a name where the value is written like one."""


class FieldRule(NamedTuple):
    """Fields at `path` are personal data of this kind; of none, whatever other rules say."""

    path: str
    kind: str | None


class FieldRules:
    """The user's rules and, after them, the built-in ones. The first that fits decides."""

    def __init__(self, rules: Sequence[FieldRule] = (), *, has_builtin: bool = True) -> None:
        """Read the rules.

        Raises:
            ConfigError: A path or a kind is not written as it must be.
        """
        self._rules = [(_parsed(rule), rule.kind) for rule in rules]
        self._has_builtin = has_builtin
        self.kinds = frozenset(kind for _, kind in self._rules if kind) | frozenset(
            BY_KIND if has_builtin else ()
        )
        self.room = _MAX_FIELDS
        """How many more fields can be remembered."""
        self.root = Field(self)
        """All of an answer, from which one comes to its fields."""

    def decide(self, path: FieldPath, told: str | None) -> tuple[bool, str | None]:
        """Return whether a rule fits the field at `path`, and the kind that it gives.

        `told` is the kind that what stands around it says.
        """
        written = tuple(each if each == ITEM else key_form(each) for each in path)
        for pattern, kind in self._rules:
            if _fits(pattern, written):
                return True, kind
        kind = (told or _builtin_kind(written[-1])) if self._has_builtin else None
        return kind is not None, kind


class Field:
    """A place in answers, and what rules say of it: decided once, since rows are alike."""

    __slots__ = ("_below", "_items", "_rules", "is_decided", "kind", "path")

    def __init__(self, rules: FieldRules, path: FieldPath = (), told: str | None = None) -> None:
        self._rules = rules
        self._below: dict[str | tuple[str, str | None], Field] = {}
        self._items: Field | None = None
        self.path = path
        self.is_decided, self.kind = rules.decide(path, told) if path else (False, None)

    def below(self, key: str, siblings: Collection[str]) -> "Field":
        """Return the field of a key; `siblings` are all keys of its object."""
        field = self._below.get(key)
        if field is not None:
            return field
        path = (*self.path, key)
        if key_form(key) not in _SAYING_LITTLE:
            return self._made(key, path, None)
        told = _told_by(path, siblings)
        return self._below.get((key, told)) or self._made((key, told), path, told)

    def _made(
        self, question: str | tuple[str, str | None], path: FieldPath, told: str | None
    ) -> "Field":
        field = Field(self._rules, path, told)
        if self._rules.room > 0:
            self._rules.room -= 1
            self._below[question] = field
        return field

    @property
    def items(self) -> "Field":
        """The items of a list that stands here."""
        items = self._items or Field(self._rules, (*self.path, ITEM))
        if self._items is None and self._rules.room > 0:
            self._rules.room -= 1
            self._items = items
        return items


def _builtin_kind(key: str) -> str | None:
    words = key.split("_")
    endings = ("_".join(words[place:]) for place in range(len(words)))
    kind = next((PERSONAL[ending] for ending in endings if ending in PERSONAL), None)
    return LIKELY_NAME if kind is None and _is_like_person(key) else kind


def _is_like_person(key: str) -> bool:
    return key in PERSONS or key.rpartition("_")[2] in SURELY_PERSONS


def is_plausible(kind: str | None, value: Json) -> bool:
    """Whether a value may be of the kind that its field's name says.

    Answers are full of `"email": "n/a"`, `"mobile": true` and `"zip": "application/zip"`.
    """
    if kind is None or isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    written = (
        str(value) if not isinstance(value, int) else "0" * min(value.bit_length() // 3 + 1, 20)
    )
    if kind == LIKELY_NAME:
        return _FULL_NAME.fullmatch(written) is not None
    if kind == "EMAIL":
        return "@" in written or "%40" in written
    if kind == "PHONE":
        return sum(map(str.isdigit, written)) >= _FEWEST_PHONE_DIGITS
    if kind in {"CARD", "ACCOUNT", "NATIONAL_ID", "BIRTH_DATE", "POSTAL_CODE", "IP"}:
        return any(map(str.isdigit, written)) and (kind != "POSTAL_CODE" or len(written) <= 16)
    if kind == "ADDRESS" and ("@" in written or written.startswith("0x")):
        return False  # of e-mail, or of memory
    if kind in {"NAME", "ADDRESS"}:
        return any(map(str.isalpha, written))
    return bool(written.strip())


@lru_cache(maxsize=4096)
def key_form(key: str) -> str:
    """Return a key without case and signs: `lastName` is `last_name`."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key[:_MAX_KEY_CHARS]).casefold()
    if not split.isascii():
        split = "".join(mark for mark in normalize("NFKD", split) if not combining(mark))
        split = normalize("NFC", split)
    return re.sub(r"[^\w*$]+|_+", "_", split).strip("_")


def _told_by(path: FieldPath, siblings: Collection[str]) -> str | None:
    """Return the kind that what stands around gives to a field whose own key says little."""
    key = key_form(path[-1])
    above = next((key_form(each) for each in reversed(path[:-1]) if each != ITEM), "")
    if key in NAME_PARTS:
        return "NAME" if above in NAME_KEYS else None
    if key in ADDRESS_KEYS:
        return "ADDRESS" if above in PERSONS or _has(siblings, BESIDE_ADDRESSES) else None
    if above in PERSONS or _has(siblings, TELLING):
        return "NAME"
    is_likely = above in ADDRESSED or _is_like_person(above) or _has(siblings, POSTAL)
    return LIKELY_NAME if is_likely else None


def _has(siblings: Collection[str], keys: Collection[str]) -> bool:
    return any(key_form(each) in keys for each in islice(siblings, _MAX_SIBLINGS))


_SAYING_LITTLE: Final = NAME_KEYS | NAME_PARTS | ADDRESS_KEYS


def _parsed(rule: FieldRule) -> FieldPath:
    if rule.kind is not None and not KIND.fullmatch(rule.kind):
        raise ConfigError(
            f"The kind {rule.kind!r} of the field rule {rule.path!r} cannot be used: write "
            "capitals, digits and _, such as CUSTOMER_ID."
        )
    parts: list[str] = []
    for each in rule.path.split("."):
        bare = each.replace(ITEM, "")
        items = (len(each) - len(bare)) // len(ITEM)
        parts += [key_form(bare)] if bare or not items else []
        parts += [ITEM] * items
    if not parts or "" in parts or parts[-1] == _ROOT or _ROOT in parts[1:]:
        raise ConfigError(
            f"The field rule {rule.path!r} cannot be read: write keys with dots between them, such "
            "as customer.name, rows[].phone or *.email."
        )
    return tuple(parts)


def _fits(pattern: FieldPath, path: FieldPath) -> bool:
    if ITEM not in pattern:
        path = tuple(each for each in path if each != ITEM)
    if pattern[0] == _ROOT:
        pattern = pattern[1:]
        if len(pattern) != len(path):
            return False
    return len(pattern) <= len(path) and all(
        one in ("*", other) for one, other in zip(reversed(pattern), reversed(path), strict=False)
    )
