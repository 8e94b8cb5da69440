"""The keys of personal fields and the words for persons, in several languages. Pure.

Keys are written as `key_form` writes them: without case, accents and signs.
"""

from collections.abc import Mapping
from typing import Final


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
