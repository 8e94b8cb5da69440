import pytest

from toolfold.privacy.detect import find

# Published examples of each number: as it is written, and with the words that it needs.
NUMBERS = [
    ("US_SSN", "078-05-1120", ""),
    ("US_SSN", "078051120", "SSN "),
    ("US_ITIN", "912-70-1234", ""),
    ("UK_NINO", "AB123456C", ""),
    ("UK_NINO", "AB 12 34 56 C", ""),
    ("UK_NHS", "943 476 5919", "NHS number "),
    ("DE_TAX_ID", "86 095 742 719", "Steuer-ID "),
    ("DE_TAX_ID", "47036892816", "IdNr. "),
    ("FR_NIR", "2 55 08 14 168 025 38", ""),
    ("FR_NIR", "255081416802538", "NIR "),
    ("ES_DNI", "12345678Z", ""),
    ("ES_DNI", "X1234567L", ""),
    ("IT_FISCAL_CODE", "RSSMRA85T10A562S", ""),
    ("NL_BSN", "111222333", "BSN: "),
    ("BR_CPF", "529.982.247-25", ""),
    ("BR_CPF", "52998224725", "cpf="),
    ("IN_AADHAAR", "2341 2341 2346", "Aadhaar "),
    ("IN_PAN", "ABCPE1234F", "PAN "),
    ("PL_PESEL", "44051401359", "PESEL "),
    ("SE_PERSONAL_NUMBER", "19811228-9874", ""),
    ("SE_PERSONAL_NUMBER", "811228-9874", "personnummer "),
    ("FI_PERSONAL_CODE", "131052-308T", ""),
    ("BE_NATIONAL_NUMBER", "85.07.30-033.28", ""),
    ("CH_AHV", "756.9217.0769.85", ""),
    ("CN_RESIDENT_ID", "11010519491231002X", ""),
    ("SG_NRIC", "S1234567D", ""),
    ("TR_IDENTITY_NUMBER", "10000000146", "T.C. kimlik no "),
    ("CA_SIN", "046 454 286", "SIN "),
    ("AU_TFN", "123 456 782", "TFN "),
    ("ZA_ID", "8001015009087", "ID "),
]


@pytest.mark.parametrize(("kind", "number", "words"), NUMBERS)
def test_a_number_of_a_person_is_found(kind: str, number: str, words: str) -> None:
    text = f"See {words}{number}, please."
    [span] = find(text)

    assert (span.kind, text[span.start : span.end]) == (kind, number)


@pytest.mark.parametrize(("kind", "number", "words"), [row for row in NUMBERS if row[2]])
def test_a_number_that_could_be_anything_needs_words_around_it(
    kind: str, number: str, words: str
) -> None:
    assert kind not in {span.kind for span in find(f"See {number}, please.")}


@pytest.mark.parametrize(
    ("kind", "number", "words"), [row for row in NUMBERS if row[0] != "IN_PAN"]
)
def test_a_number_with_one_wrong_digit_is_not_found_as_that(
    kind: str, number: str, words: str
) -> None:
    wrong = {"US_SSN": "000", "US_ITIN": "812", "UK_NINO": "QQ"}
    if kind in wrong:
        changed = wrong[kind] + number[len(wrong[kind]) :]
    else:
        place = max(i for i, mark in enumerate(number) if mark.isdigit())
        changed = number[:place] + str((int(number[place]) + 1) % 10) + number[place + 1 :]

    assert kind not in {span.kind for span in find(f"See {words}{changed}, please.")}


def test_a_number_that_fails_its_check_does_not_hide_the_one_after_it() -> None:
    text = "2024 4111 1111 1111 1111"

    assert [(span.kind, text[span.start : span.end]) for span in find(text)] == [
        ("CARD", "4111 1111 1111 1111")
    ]
