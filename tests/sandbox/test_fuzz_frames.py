"""The frame decoder, and the session behind it, fed with whatever a guest could send."""

import json
import math
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import anyio
import pytest
from guests import Host, host_modules
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from toolfold.config.settings import Limits
from toolfold.sandbox.cpython import frames
from toolfold.sandbox.cpython.frames import FrameBreach, FrameReader, frame, read_json, write_json
from toolfold.sandbox.cpython.pool import Guest
from toolfold.sandbox.cpython.sandbox import CPythonSession, HostOffer
from toolfold.sandbox.sandbox import GuestOutcome, Program

VALUE_BYTES = 1_000
NODES = 50
KINDS = st.sampled_from(range(1, 10))
SOAK = settings(max_examples=20_000, deadline=None)
SMALL = Limits(
    guest_time_s=0.5,
    wall_time_s=5.0,
    calls=20,
    sleep_s=0.05,
    value_bytes=VALUE_BYTES,
    value_nodes=NODES,
    output_bytes=2_000,
)

texts = st.text(st.sampled_from('"\\u{[,:]} \nd8é\x00😀'), max_size=40)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)
json_like = st.text(st.sampled_from('"\\u{[,:]}0e1-tdnNI 8\n'), max_size=300).map(str.encode)
payloads = st.one_of(st.binary(max_size=300), json_like, json_values.map(write_json))


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """JSON in which some bytes are not what they were."""
    payload = bytearray(write_json(draw(json_values)))
    for _ in range(draw(st.integers(0, 3))):
        if payload:
            payload[draw(st.integers(0, len(payload) - 1))] = draw(st.integers(0, 255))
    return bytes(payload)


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Frames, some of which lie about their length, with garbage between them."""
    parts = []
    for _ in range(draw(st.integers(0, 6))):
        payload = draw(st.one_of(payloads, mutated(), calls()))
        kind = draw(KINDS | st.integers(0, 255))
        whole = frame(kind, payload)
        parts.append(draw(st.sampled_from([whole, whole, whole, whole[:-1], payload])))
    return b"".join(parts)


@st.composite
def calls(draw: st.DrawFn) -> bytes:
    """The payload of a call, nearly right."""
    head = frames.CALL_HEAD.pack(
        draw(st.integers(0, 3)), draw(st.integers(0, 255)), draw(st.integers(0, 2**32 - 1))
    )
    name = draw(st.sampled_from(["host.echo", "host.fail", "show", "os.system", ""]))
    return head + write_json([name, draw(json_values), draw(json_values)])


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges)]


def read(stream: bytes, places: list[int]) -> tuple[list[tuple[int, bytes]], bool]:
    """Return the frames of a stream that comes in pieces, and whether it is a breach."""
    reader, found = FrameReader(VALUE_BYTES), []
    try:
        for piece in cut(stream, places):
            for each in reader.feed(piece):
                found.append(each)  # noqa: PERF402  # those before a breach count
    except FrameBreach:
        return found, True
    return found, False


def check_reading(stream: bytes, places: list[int]) -> None:
    found, is_breach = read(stream, places)

    assert (found, is_breach) == read(stream, [])
    assert b"".join(frame(*each) for each in found) == stream[: sum(5 + len(p) for _, p in found)]
    assert all(len(payload) <= frames.OUTPUT_BYTES + 100_000 for _, payload in found)


def check_decoding(payload: bytes) -> None:
    try:
        value = read_json(payload, nodes=NODES)
    except FrameBreach:
        return
    assert parts(value) <= NODES
    assert json.loads(payload) == value
    json.dumps(value, ensure_ascii=False).encode()


def parts(value: Any) -> int:
    match value:
        case dict():
            return 1 + sum(map(parts, value.values()))
        case list():
            return 1 + sum(map(parts, value))
        case float():
            assert not math.isnan(value)
    return 1


places_of_cuts = st.lists(st.integers(0, 10_000), max_size=8)


@given(streams() | st.binary(max_size=500), places_of_cuts)
def test_frames_are_the_same_however_they_arrive(stream: bytes, places: list[int]) -> None:
    check_reading(stream, places)


@pytest.mark.soak
@SOAK
@given(streams() | st.binary(max_size=5_000), places_of_cuts)
def test_frames_are_the_same_however_they_arrive_for_long(stream: bytes, places: list[int]) -> None:
    check_reading(stream, places)


@given(st.lists(st.tuples(KINDS, st.binary(max_size=200)), max_size=8), places_of_cuts)
def test_whole_frames_come_out_as_they_went_in(
    sent: list[tuple[int, bytes]], places: list[int]
) -> None:
    assert read(b"".join(frame(*each) for each in sent), places) == (sent, False)


@given(st.one_of(payloads, mutated()))
@example(b'["' + b'\\"' * 40 + b'",' + b"1," * 60 + b"1]")
@example(b"[" + b'"",' * 60 + b'""]')
@example(b"[" * 60 + b"]" * 60)
@example(b'["\\ud800"]')
@example(b'["\\\\ud800"]')
@example(b"[1e999]")
@example(b"[" + b"9" * 5_000 + b"]")
@example(b'{"a":1,"a":2}')
@example(b"[NaN]")
@example(b"")
def test_a_payload_is_refused_or_read_within_its_budget(payload: bytes) -> None:
    check_decoding(payload)


@pytest.mark.soak
@SOAK
@given(st.one_of(payloads, mutated()))
def test_a_payload_is_refused_or_read_within_its_budget_for_long(payload: bytes) -> None:
    check_decoding(payload)


@given(json_values)
@example('{"text": "\\ud83d\\ude00"}')
@example("\\ud800")
@example("\\\\ud800")
def test_what_means_well_is_read_as_it_was_written(value: Any) -> None:
    if any(map(math.isinf, floats(value))):
        return

    assert read_json(write_json(value), nodes=10_000) == value


def floats(value: Any) -> Iterator[float]:
    match value:
        case dict():
            yield from (each for inner in value.values() for each in floats(inner))
        case list():
            yield from (each for inner in value for each in floats(inner))
        case float():
            yield value


WORST = {
    "quotes that are escaped": b'["' + b'\\"' * 4_000_000 + b'",' + b"1," * 300_000 + b"1]",
    "a text that does not end": b"[" + b"1," * 300_000 + b'"' + b'\\"' * 4_000_000,
    "quotes": b'"' * 8_000_000,
    "backslashes": b'["' + b"\\" * 8_000_000 + b'"]',
    "texts": b"[" + b'"",' * 2_000_000 + b'""]',
    "deep lists": b"[" * 8_000_000,
    "deep dicts": b'{"":' * 2_000_000,
    "one long number": b"9" * 8_000_000,
    "one long fraction": b"0." + b"9" * 8_000_000,
    "escapes": b'["' + b"\\u00e9" * 1_300_000 + b'"]',
    "half an escape": b'"' + b"\\\\" * 4_000_000 + b"\\u",
    "bytes that are no text": b"\xff" * 8_000_000,
}


@pytest.mark.parametrize("payload", WORST.values(), ids=WORST)
def test_the_worst_payloads_take_no_longer_than_their_length_says(payload: bytes) -> None:
    """In a process that can be ended: what takes forever here holds the interpreter's lock."""
    code = (
        "import sys\nfrom toolfold.sandbox.cpython.frames import FrameBreach, read_json\n"
        "try:\n    read_json(sys.stdin.buffer.read(), nodes=200_000)\n"
        "except FrameBreach:\n    pass\n"
    )

    subprocess.run([sys.executable, "-c", code], input=payload, timeout=40, check=True)


@contextmanager
def guest_that_says(stream: bytes) -> Iterator[Guest]:
    """A guest that says this and goes away; a process stands behind it, for it to be killed."""
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(["sleep", "60"])
    guest = Guest(process.pid, os.pidfd_open(process.pid), ours)
    ours.setblocking(False)
    theirs.setblocking(False)
    try:
        theirs.send(stream)
        theirs.shutdown(socket.SHUT_WR)
        yield guest
    finally:
        guest.close()
        theirs.close()
        process.kill()
        process.wait()


async def told(stream: bytes) -> tuple[GuestOutcome, Host]:
    host = Host()
    with guest_that_says(stream) as guest:
        offer = HostOffer(host_modules(), frozenset({"show"}), None)
        session = CPythonSession(guest, SMALL, offer)
        try:
            with anyio.fail_after(60):
                outcome = await session.run(Program(source="1\n2"), host.call)
        finally:
            session.close()
    return outcome, host


def check_session(stream: bytes) -> None:
    outcome, host = anyio.run(told, stream)

    assert len(host.calls) <= SMALL.calls
    assert all(parts([*call.args, call.kwargs]) <= 2 * NODES + 5 for call in host.calls)
    assert parts(outcome.value) <= NODES
    assert len(outcome.output) <= SMALL.output_bytes
    assert outcome.failure is None or outcome.failure.message
    json.dumps([outcome.value, outcome.output]).encode()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(streams())
def test_a_session_survives_whatever_a_guest_says(stream: bytes) -> None:
    check_session(stream)


@pytest.mark.soak
@settings(max_examples=5_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(streams())
def test_a_session_survives_whatever_a_guest_says_for_long(stream: bytes) -> None:
    check_session(stream)


@pytest.mark.parametrize("number", ["0.1234567890123456789e-123", "1" * 600])
def test_others_have_their_turn_while_a_large_payload_is_read(number: str) -> None:
    count = min(199_000, 12_000_000 // len(number))
    payload = f"[{','.join([number] * count)}]".encode()
    done = threading.Event()

    def read() -> None:
        try:
            read_json(payload, nodes=count + 1)
        finally:
            done.set()

    reader = threading.Thread(target=read)
    turns = [time.perf_counter()]
    reader.start()
    while not done.is_set():
        time.sleep(0)
        turns.append(time.perf_counter())
    reader.join()

    assert max(after - before for before, after in pairwise(turns)) < (turns[-1] - turns[0]) / 2


def test_a_number_that_takes_long_to_read_is_refused() -> None:
    with pytest.raises(FrameBreach, match="characters"):
        read_json(f"[0.{'1' * 300_000}]".encode(), nodes=2)
