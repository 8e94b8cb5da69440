"""Verify an export of the audit log: each row by its digest, and the chain by the key."""

import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from hmac import compare_digest
from typing import Any, Final

from toolfold.journal.audit.chain import Signer, digest

FORMAT: Final = "toolfold-audit-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedExport:
    """How many entries of an export hold, and what is wrong with the next one."""

    entries: int
    fault: str = ""


def verify_export(lines: Iterable[bytes], signer: Signer) -> VerifiedExport:
    """Return how far an export holds. Pure: `lines` are those of the file."""
    reader, checked = iter(lines), 0
    try:
        seq, chain = _start(next(reader, b""))
    except ValueError as error:
        return VerifiedExport(entries=0, fault=f"line 1: {error}")
    for number, line in enumerate(reader, start=2):
        seq += 1
        try:
            chain = _check(json.loads(line), seq, chain, signer)
        except (ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
            what = str(error) if type(error) is ValueError else "it is not an entry"
            return VerifiedExport(entries=checked, fault=f"line {number}: {what}")
        checked += 1
    return VerifiedExport(entries=checked)


def _start(line: bytes) -> tuple[int, bytes]:
    """Return the number and the chain of the entry before the first.

    Raises:
        ValueError: It is not the first line of an export.
    """
    try:
        before: dict[str, Any] = json.loads(line)["before"]
        is_ours = json.loads(line)["format"] == FORMAT
        start = int(before["seq"]), bytes.fromhex(before["chain"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError("this is not an export of the audit log") from error
    if not is_ours:
        raise ValueError(f"the format is not {FORMAT}")
    return start


def _check(entry: dict[str, Any], seq: int, before: bytes, signer: Signer) -> bytes:
    """Return the chain of an entry that holds.

    Raises:
        ValueError: It does not hold.
    """
    hashed = bytes.fromhex(entry["digest"])
    if entry["seq"] != seq:
        raise ValueError(f"entry {seq} is missing")
    if entry["row"] is not None and not compare_digest(
        digest(tuple(entry["row"].values())), hashed
    ):
        raise ValueError(f"entry {seq} of run {entry['run']} was changed")
    chain = signer.chain(before, hashed, entry["kind"].encode(), entry["ref"], entry["at"])
    if not compare_digest(chain, bytes.fromhex(entry["chain"])):
        raise ValueError(f"entry {seq} of run {entry['run']} does not follow from the one before")
    return chain
