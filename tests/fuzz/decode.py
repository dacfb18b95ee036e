"""Compares the decoder with the reference: rows and dead letters, bit for bit.

Most requests come from `tests.model.arrow.requests`, with every field and type of value, in all
encodings that protobuf can read. Some of them are damaged, and some are mutated bodies of the
scanner's fuzzer. Many requests are decoded per call, from memory that ends at an unreadable page,
with junk bytes behind them that must not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from frazil.ingest.otlp.messages import REQUESTS
from frazil.model import Signal
from frazil.model.arrow import DICTIONARY_TABLES, TABLES, Decode, decode, decode_dictionary
from frazil.model.arrow.decoder import requests as requests_module
from frazil.model.arrow.types import Decoded, ExportRequest
from frazil.model.protobuf.memory import SLACK_BYTES
from tests.fuzz.corpus import Body, corpus
from tests.fuzz.mutate import mutate, scribble
from tests.fuzz.wire import Fence
from tests.model.arrow.decoder.reference import differences, reference
from tests.model.arrow.requests import Writer, numbered

CALL_BYTES = 60_000
"""Maximum bytes of the requests of one call; the fence takes a little more."""
CORPUS_COUNT = 40
EXAMPLES_MAX = 5
EXAMPLE_LENGTH = 5000
MUTATED, DAMAGED = 0.06, 0.12
"""Cumulative shares of requests: mutated ones of the corpus, then damaged ones."""
WILDNESS = (0.0, 0.1, 0.4)
JUNK = b"\xc3\xff\x0a\x80" * (SLACK_BYTES // 4)

FENCE = Fence()


def run(count: int, seed: int) -> dict[str, object]:
    """Decode `count` requests of each signal and compare. Same seed, same requests."""
    total: dict[str, Any] = {"disagreements": []}
    for signal in Signal:
        found = fuzz_signal(signal.value, count, Random(seed))
        total["disagreements"] += found.pop("disagreements")
        total[signal.value] = found
    return total


def fuzz_signal(signal: str, count: int, rand: Random) -> dict[str, Any]:
    """Return counts, and the requests that decode differently from the reference."""
    totals = {"requests": 0, "rows": 0, "dead": 0, "calls": 0}
    disagreements: list[str] = []
    for requests, plain in calls(signal, count, rand):
        rows, dead = reference(signal, requests, plain=plain)
        decoded = decode_fenced(decode, signal, requests)
        if differences(signal, decoded, rows, dead):
            disagreements += explain(signal, requests)
        elif not is_same(signal, decode_fenced(decode_dictionary, signal, requests), decoded):
            whole = b"".join(request.body for request in requests).hex()
            disagreements.append(f"{signal} with numbers: {whole}"[:EXAMPLE_LENGTH])
        totals["requests"] += len(requests)
        totals["rows"] += len(rows)
        totals["dead"] += len(dead)
        totals["calls"] += 1
    return {**totals, "disagreements": disagreements[:EXAMPLES_MAX]}


def calls(
    signal: str, count: int, rand: Random
) -> Iterator[tuple[list[ExportRequest], frozenset[int]]]:
    """Yield the requests of each call, and the offsets of those without groups."""
    pool = corpus(REQUESTS[Signal(signal)], rand, CORPUS_COUNT)
    writer = Writer(rand, wildness=rand.choice(WILDNESS))
    written: list[tuple[bytes, bool]] = []
    size = 0
    for _ in range(count):
        body, is_plain = next_body(signal, writer, pool, rand)
        if written and size + len(body) > CALL_BYTES:
            yield call_of(written)
            written, size = [], 0
            if rand.random() < 0.1:
                writer = Writer(rand, wildness=rand.choice(WILDNESS))
        written.append((body, is_plain))
        size += len(body)
    yield call_of(written)


def next_body(signal: str, writer: Writer, pool: list[Body], rand: Random) -> tuple[bytes, bool]:
    chance = rand.random()
    if chance < MUTATED:
        return mutate(rand.choice(pool), rand.choice(pool), rand), False
    body = writer.request(signal)
    return (scribble(body, rand), False) if chance < DAMAGED else (body, True)


def call_of(written: list[tuple[bytes, bool]]) -> tuple[list[ExportRequest], frozenset[int]]:
    requests = numbered(body for body, _ in written)
    pairs = zip(requests, written, strict=True)
    return requests, frozenset(request.offset for request, (_, is_plain) in pairs if is_plain)


def is_same(signal: str, numbered: Decoded, plain: Decoded) -> bool:
    """Return True if dictionary-encoded rows and dead letters equal the plain ones."""
    table = Signal(signal).table
    numbered.batch.validate(full=True)
    return (
        numbered.batch.schema.equals(DICTIONARY_TABLES[table])
        # Compared as text, because NaN is not equal to itself.
        and str(numbered.batch.cast(TABLES[table]).to_pylist()) == str(plain.batch.to_pylist())
        and numbered.dead == plain.dead
    )


def decode_fenced(decode: Decode, signal: str, requests: list[ExportRequest]) -> Decoded:
    """Decode requests followed by junk and an unreadable page."""
    before = requests_module.join
    if sum(len(request.body) for request in requests) <= CALL_BYTES:
        requests_module.join = lambda bodies: FENCE.put(b"".join(bodies) + JUNK)
    try:
        return decode(signal, requests)
    finally:
        requests_module.join = before


def explain(signal: str, requests: list[ExportRequest]) -> list[str]:
    """Return the requests that differ when decoded alone, and how."""
    found = []
    for request in requests:
        wrong = differences(signal, decode(signal, [request]), *reference(signal, [request]))
        found += [f"{signal} {request.body.hex()}: {each}"[:EXAMPLE_LENGTH] for each in wrong]
    whole = b"".join(request.body for request in requests).hex()
    return found or [f"{signal}: only when decoded together: {whole}"[:EXAMPLE_LENGTH]]
