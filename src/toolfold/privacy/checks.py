"""Check digits: does a number have those that its issuer gives. Pure.

Each function takes the number without separators, in capitals, of the length that it expects.
"""

from collections.abc import Sequence
from typing import Final

# What a digit is worth, as a byte: its value, and what its double is worth by Luhn.
_ONCE: Final = bytes(max(0, byte - 48) % 10 for byte in range(256))
_TWICE: Final = bytes(digit * 2 - 9 * (digit > 4) for digit in _ONCE)
_DNI_LETTERS: Final = "TRWAGMYFPDXBNJZSQVHLCKE"
_HETU_MARKS: Final = "0123456789ABCDEFHJKLMNPRSTUVWXY"
# What a character counts at the odd places of an Italian fiscal code, by the official table.
_ODD_DIGITS: Final = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21)
_ODD_LETTERS: Final = (
    *(1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18),
    *(20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
)
# The dihedral group of order ten, in which Verhoeff multiplies.
_PRODUCT: Final = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9),
    (1, 2, 3, 4, 0, 6, 7, 8, 9, 5),
    (2, 3, 4, 0, 1, 7, 8, 9, 5, 6),
    (3, 4, 0, 1, 2, 8, 9, 5, 6, 7),
    (4, 0, 1, 2, 3, 9, 5, 6, 7, 8),
    (5, 9, 8, 7, 6, 0, 4, 3, 2, 1),
    (6, 5, 9, 8, 7, 1, 0, 4, 3, 2),
    (7, 6, 5, 9, 8, 2, 1, 0, 4, 3),
    (8, 7, 6, 5, 9, 3, 2, 1, 0, 4),
    (9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
)
_PERMUTED: Final = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9),
    (1, 5, 7, 6, 2, 8, 3, 0, 9, 4),
    (5, 8, 0, 3, 7, 9, 6, 1, 4, 2),
    (8, 9, 1, 6, 0, 4, 3, 5, 2, 7),
    (9, 4, 5, 3, 1, 2, 6, 8, 7, 0),
    (4, 2, 8, 6, 5, 7, 3, 9, 0, 1),
    (2, 7, 9, 3, 8, 0, 6, 4, 1, 5),
    (7, 0, 4, 6, 9, 1, 3, 2, 5, 8),
)


def luhn(number: str) -> bool:
    """Payment cards, and many national numbers."""
    digits = number.encode()
    return (sum(digits[-1::-2].translate(_ONCE)) + sum(digits[-2::-2].translate(_TWICE))) % 10 == 0


def mod_97(number: str) -> bool:
    """IBAN: the first four characters moved to the end, letters as numbers."""
    return int("".join(str(int(mark, 36)) for mark in number[4:] + number[:4])) % 97 == 1


def verhoeff(number: str) -> bool:
    """Aadhaar."""
    check = 0
    for place, digit in enumerate(reversed(number)):
        check = _PRODUCT[check][_PERMUTED[place % 8][int(digit)]]
    return check == 0


def us_ssn(number: str) -> bool:
    """No check digit; some areas, groups and serials are never given."""
    return (
        number[:3] not in ("000", "666")
        and number[0] != "9"
        and number[3:5] != "00"
        and number[5:] != "0000"
    )


def us_itin(number: str) -> bool:
    """Begins with 9, and has a group that the tax office gives."""
    group = int(number[3:5])
    return number[0] == "9" and (50 <= group <= 65 or 70 <= group <= 88 or 90 <= group != 93)


def uk_nino(number: str) -> bool:
    """No check digit; some letters and pairs are never given."""
    return (
        number[0] not in "DFIQUV"
        and number[1] not in "DFIOQUV"
        and number[:2] not in {"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"}
        and number[8] in "ABCD"
    )


def uk_nhs(number: str) -> bool:
    """Weighted modulo 11; the same digit ten times is never given."""
    return not _is_one_digit(number) and _weighted(number, range(10, 0, -1)) % 11 == 0


def de_tax_id(number: str) -> bool:
    """ISO 7064 modulo 11, 10; exactly one digit comes twice or thrice in the first ten."""
    counts = sorted(number[:10].count(digit) for digit in set(number[:10]))
    if number[0] == "0" or counts[-1] not in (2, 3) or (len(counts) > 1 and counts[-2] != 1):
        return False
    product = 10
    for digit in number[:10]:
        product = ((int(digit) + product) % 10 or 10) * 2 % 11
    return (11 - product) % 10 == int(number[10])


def fr_nir(number: str) -> bool:
    """97 less the rest; the two departments of Corsica count as 19 and 18."""
    body = number[:13].replace("2A", "19", 1).replace("2B", "18", 1)
    is_month = "01" <= number[3:5] <= "12" or "20" <= number[3:5] <= "99"
    return body.isdigit() and is_month and 97 - int(body) % 97 == int(number[13:])


def es_dni(number: str) -> bool:
    """Eight digits and the letter of their rest by 23; a foreigner's begins with X, Y or Z."""
    head = number[0].translate({88: "0", 89: "1", 90: "2"})
    digits = head + number[1:8]
    return digits.isdigit() and _DNI_LETTERS[int(digits) % 23] == number[8]


def it_fiscal_code(number: str) -> bool:
    """Characters count by a table at odd places and by their value at even ones."""
    total = 0
    for place, mark in enumerate(number[:15]):
        value = int(mark) if mark.isdigit() else ord(mark) - 65
        if place % 2 == 0:
            value = _ODD_DIGITS[value] if mark.isdigit() else _ODD_LETTERS[value]
        total += value
    return chr(65 + total % 26) == number[15]


def nl_bsn(number: str) -> bool:
    """The test of eleven, in which the last digit counts negative."""
    return int(number) > 0 and _weighted(number, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def br_cpf(number: str) -> bool:
    """Two check digits; the same digit eleven times is never given."""
    first = _weighted(number[:9], range(10, 1, -1)) * 10 % 11 % 10
    second = _weighted(number[:10], range(11, 1, -1)) * 10 % 11 % 10
    return not _is_one_digit(number) and number[9:] == f"{first}{second}"


def in_aadhaar(number: str) -> bool:
    """Verhoeff; never begins with 0 or 1."""
    return number[0] not in "01" and verhoeff(number)


def pl_pesel(number: str) -> bool:
    """Weighted modulo 10, and a date."""
    is_date = 1 <= int(number[2:4]) % 20 <= 12 and 1 <= int(number[4:6]) <= 31
    return is_date and _weighted(number, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0


def se_personal_number(number: str) -> bool:
    """Luhn over the last ten digits, and a date; the day may be 60 higher."""
    last = number[-10:]
    is_date = 1 <= int(last[2:4]) <= 12 and 1 <= int(last[4:6]) % 60 <= 31
    return is_date and luhn(last)


def fi_personal_code(number: str) -> bool:
    """A mark for the rest by 31 of date and serial; `number` keeps its sign of the century."""
    rest = int(number[:6] + number[7:10]) % 31
    return 1 <= int(number[2:4]) <= 12 and _HETU_MARKS[rest] == number[10]


def be_national_number(number: str) -> bool:
    """97 less the rest; for those born since 2000 a 2 stands before."""
    check = int(number[9:])
    return check in (97 - int(number[:9]) % 97, 97 - int("2" + number[:9]) % 97)


def ch_ahv(number: str) -> bool:
    """The country's prefix, and the check digit of a bar code."""
    return number.startswith("756") and _weighted(number, (1, 3) * 6 + (1,)) % 10 == 0


def cn_resident_id(number: str) -> bool:
    """ISO 7064 modulo 11, 2, and a date."""
    rest = sum(int(digit) << (17 - place) for place, digit in enumerate(number[:17])) % 11
    is_date = "1900" <= number[6:10] < "2100" and "01" <= number[10:12] <= "12"
    return is_date and "10X98765432"[rest] == number[17]


def sg_nric(number: str) -> bool:
    """A letter for the weighted sum, by the century and kind that the first letter says."""
    marks = {"S": (0, "JZIHGFEDCBA"), "T": (4, "JZIHGFEDCBA")}
    marks |= {"F": (0, "XWUTRQPNMLK"), "G": (4, "XWUTRQPNMLK"), "M": (3, "XWUTRQPNJLK")}
    if number[0] not in marks:
        return False
    offset, letters = marks[number[0]]
    rest = (offset + _weighted(number[1:8], (2, 7, 6, 5, 4, 3, 2))) % 11
    return letters[10 - rest if number[0] == "M" else rest] == number[8]


def tr_identity_number(number: str) -> bool:
    """Two check digits; never begins with 0."""
    digits = [int(digit) for digit in number]
    tenth = (7 * sum(digits[0:9:2]) - sum(digits[1:8:2])) % 10
    return digits[0] != 0 and digits[9] == tenth and digits[10] == sum(digits[:10]) % 10


def au_tfn(number: str) -> bool:
    """Weighted modulo 11."""
    return int(number) > 0 and _weighted(number, (1, 4, 3, 7, 5, 8, 6, 9, 10)) % 11 == 0


def za_id(number: str) -> bool:
    """Luhn, and a date."""
    return 1 <= int(number[2:4]) <= 12 and 1 <= int(number[4:6]) <= 31 and luhn(number)


def in_pan(number: str) -> bool:
    """No check that can be made; the fourth letter says what kind of person it is."""
    return number[3] in "ABCFGHLJPTK"


def _weighted(number: str, weights: Sequence[int]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(number, weights, strict=True))


def _is_one_digit(number: str) -> bool:
    return len(set(number)) == 1
