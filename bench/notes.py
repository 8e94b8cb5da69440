"""Notes and questions for benchmarks of memory: any number, always the same, none like another."""

import random
from collections.abc import Iterator

_PEOPLE = """Ada Boris Chen Dalia Emil Fatima Goran Hana Ivo Jutta Kofi Lena Mira Nils Olga Pavel
Quinn Rosa Samir Tove Uma Viktor Wanda Xenia Yusuf Zoe"""
_THINGS = """billing login search export import cache queue scheduler parser printer dashboard
gateway invoice report backup index mailer webhook session token upload thumbnail translation map
calendar checkout refund catalogue sensor firmware antenna kernel compiler notebook garden kitchen
bicycle piano violin recipe vaccine passport contract lease mortgage warehouse forklift harbour
ferry tunnel glacier volcano orchard vineyard bakery library archive museum theatre rehearsal
marathon chess telescope microscope battery turbine bridge elevator thermostat aquarium parrot"""
_VERBS = """rewrite postpone measure cancel repair translate double halve rename migrate document
paint sell rent borrow test archive restore split merge encrypt shrink review approve reject
replace simplify automate inspect insure"""
_REASONS = """costs noise rain latency customers auditors privacy safety weight heat rust mould
colour deadline budget holidays strike flood frost traffic licence warranty allergy insomnia
curiosity nostalgia tradition fashion accuracy duplicates timeouts overflow encoding timezone"""
_PLACES = """Lisbon Oslo Nairobi Lima Kyoto Quito Riga Cairo Perth Tunis Bern Porto Hanoi Turin
Gdansk Tromso Malaga Izmir Leeds Ghent"""


def notes(count: int, *, seed: str = "notes") -> Iterator[str]:
    """Yield so many notes of some thirty words; another seed gives others."""
    choose = random.Random(seed)
    for number in range(count):
        who, other = choose.sample(_PEOPLE.split(), 2)
        thing, second, third = choose.sample(_THINGS.split(), 3)
        verb, later = choose.sample(_VERBS.split(), 2)
        reason, worry = choose.sample(_REASONS.split(), 2)
        place, amount = choose.choice(_PLACES.split()), choose.randrange(2, 980)
        said = choose.choice(
            (
                f"{who} decided in {place} to {verb} the {thing} because of {reason}; {other} wants"
                f" to {later} the {second} first and asked for {amount} more of it.",
                f"The {thing} in {place} must not touch the {second}: {reason} was the cause of"
                f" {amount} failures, says {who}, and {other} will {verb} the {third}.",
                f"{who} prefers the {thing} to the {second}. We {verb} it every {amount} days in"
                f" {place}, mostly for {reason} and {worry}, with help from {other}.",
            )
        )
        yield f"{said} (no. {number})"


def questions(count: int) -> Iterator[str]:
    """Yield so many different questions about such notes."""
    choose = random.Random("questions")
    for number in range(count):
        who, thing = choose.choice(_PEOPLE.split()), choose.choice(_THINGS.split())
        verb, place = choose.choice(_VERBS.split()), choose.choice(_PLACES.split())
        yield f"why did {who} {verb} the {thing} in {place}, and when was visit {number}"
