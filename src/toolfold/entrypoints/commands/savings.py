"""`toolfold savings`: what the ledger says, read from the journal."""

import json
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from toolfold.config.config import load_config
from toolfold.entrypoints.commands import savings_text as shown
from toolfold.entrypoints.commands.price import Price
from toolfold.entrypoints.commands.times import parse_since
from toolfold.entrypoints.terminal import local_time
from toolfold.journal.accounts import Accounts
from toolfold.journal.ledger import Account, Sums, sums, uses
from toolfold.journal.reader import read_journal


def savings(arguments: Namespace) -> int:
    """Print what was saved, or what could be."""
    price = Price(arguments.price, arguments.users)
    if arguments.estimate:
        from toolfold.entrypoints.commands.estimate import print_estimate

        return print_estimate(price, as_json=arguments.json)
    since = parse_since(arguments.since, now=time.time()) if arguments.since else 0.0
    found = _read()
    accounts = [each for each in found.all if each.at >= since]
    if arguments.json:
        print(json.dumps(_as_json(accounts, found.cut, arguments.by, price), indent=2))
    elif not accounts:
        print("No run is in the journal yet." if not found.all else "No run is that young.")
    else:
        _print(accounts, found.cut, arguments.by, price)
    return 0


def _read() -> Accounts:
    path = load_config().directories.data / "runs.db"
    return read_journal(path, lambda journal: journal.accounts()) or Accounts(all=(), cut=0)


def _print(accounts: Sequence[Account], cut: int, by: str | None, price: Price) -> None:
    total = sums(accounts)
    print("\n".join(shown.overview(total, since=accounts[0].at, cut=cut)))
    if by in {"tool", "server"}:
        found = uses(accounts, by_server=by == "server")
        print("\n".join(["", *shown.use_table(found, by)]))
    elif by:
        print("\n".join(["", *shown.sums_table(_grouped(accounts, by), by)]))
    if (money := price.of(total.saved)) is not None:
        print("\n".join(["", *shown.money(money, price.dollars or 0.0, price.users)]))


def _grouped(accounts: Sequence[Account], by: str) -> Mapping[str, Sums]:
    name = _NAMES[by]
    groups: dict[str, list[Account]] = {}
    for account in accounts:
        groups.setdefault(name(account), []).append(account)
    return {key: sums(group) for key, group in groups.items()}


def _day(account: Account) -> str:
    return local_time(account.at).strftime("%Y-%m-%d")


_NAMES: Final[Mapping[str, Callable[[Account], str]]] = {
    "run": lambda account: account.run,
    "day": _day,
    "door": lambda account: account.door,
}


def _as_json(accounts: Sequence[Account], cut: int, by: str | None, price: Price) -> dict[str, Any]:
    total = sums(accounts)
    answer: dict[str, Any] = {**_sums_json(total), "cut": cut}
    if by in {"tool", "server"}:
        found = uses(accounts, by_server=by == "server")
        answer["by"] = {name: asdict(use) for name, use in found.items()}
    elif by:
        groups = _grouped(accounts, by)
        answer["by"] = {name: _sums_json(group) for name, group in groups.items()}
    if price.dollars is not None:
        answer |= {"price": price.dollars, "users": price.users, "dollars": price.of(total.saved)}
    return answer


def _sums_json(found: Sums) -> dict[str, int]:
    return {**asdict(found), "saved": found.saved, "saved_of_loaded": found.saved_of_loaded}
