"""Compares the scanner with protobuf's parser: accept or refuse, count, reject, prune.

The oracle parses the body and inspects the messages, as any reader of the log would. One difference
is allowed: the scanner refuses groups, also where protobuf skips them.

Each body ends at an unreadable page, so that reading one byte too far kills the process.
"""

from __future__ import annotations

import ctypes
import mmap
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, cast

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.message_factory import GetMessageClass

from frazil.errors import Malformed
from frazil.ingest.otlp.messages import REQUESTS
from frazil.ingest.otlp.scan import prune, scan
from frazil.model import Signal
from tests.fuzz.corpus import BODY_BYTES_MAX, corpus, indexed, read_varint
from tests.fuzz.mutate import mutate

CORPUS_COUNT = 150
GROW_EVERY = 61
"""Every n-th mutated body that is still accepted joins the corpus, to be mutated again."""
EXAMPLES_MAX = 10
INT64_MAX = 2**63 - 1

CLASSES: dict[Signal, type[Message]] = {
    signal: GetMessageClass(REQUESTS[signal]) for signal in Signal
}


class Fence:
    """Memory that ends at an unreadable page. Bodies are placed at its end."""

    def __init__(self) -> None:
        self._size = 16 * mmap.PAGESIZE
        self._memory = mmap.mmap(-1, self._size + mmap.PAGESIZE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory)) + self._size
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        nothing = 0
        forbidden = protect(ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE), nothing)
        assert forbidden == 0, f"mprotect: errno {ctypes.get_errno()}"
        self._view = memoryview(self._memory)

    def put(self, data: bytes) -> bytes:
        """Return the bytes placed before the unreadable page, valid until the next `put`."""
        begin = self._size - len(data)
        assert begin >= 0, "the body is too large for the fence"
        self._memory[begin : self._size] = data
        # The scanner accepts any buffer, but its parameter is typed as bytes.
        return cast(bytes, self._view[begin : self._size].toreadonly())


FENCE = Fence()


def run(count: int, seed: int) -> dict[str, object]:
    """Compare `count` mutated bodies. Same seed, same bodies."""
    rand = Random(seed)
    pools = {signal: corpus(REQUESTS[signal], rand, CORPUS_COUNT) for signal in Signal}
    signals = list(Signal)
    outcomes: Counter[str] = Counter()
    disagreements: list[str] = []
    for number in range(count):
        signal = signals[number % len(signals)]
        pool = pools[signal]
        one, other = (pool[int(rand.random() * len(pool))] for _ in range(2))
        data = mutate(one, other, rand)
        outcome = judge(signal, data)
        outcomes[outcome] += 1
        if outcome not in OUTCOMES:
            disagreements.append(f"{outcome}: {signal.value} {data.hex()}")
        is_whole = outcome in ("accepted", "pruned") and 0 < len(data) < BODY_BYTES_MAX
        if is_whole and number % GROW_EVERY == 0:
            # The first half of the pool stays valid, so that mutations do not pile up.
            slot = rand.randrange(len(pool) // 2, len(pool))
            pool[slot] = indexed(data, REQUESTS[signal])
    return {
        "bodies": count,
        **{outcome: outcomes[outcome] for outcome in OUTCOMES},
        "disagreement_count": len(disagreements),
        "disagreements": disagreements[:EXAMPLES_MAX],
    }


OUTCOMES = ("accepted", "pruned", "refused", "refused_groups")
"""Agreement: all records are storable, some are not, both refuse, only the scanner refuses."""


def judge(signal: Signal, data: bytes) -> str:
    """Return one of `OUTCOMES`, or a description of the disagreement."""
    try:
        message = CLASSES[signal].FromString(data)
    except DecodeError:
        message = None
    fenced = FENCE.put(data)
    try:
        scanned = scan(signal, fenced)
    except Malformed as error:
        if message is None:
            return "refused"
        is_group = "groups" in str(error) and has_group(REQUESTS[signal], data)
        return "refused_groups" if is_group else f"only the scanner refuses: {error}"
    if message is None:
        return "only protobuf refuses"
    counts = count_of(signal, message)
    if counts != (scanned.record_count, scanned.rejected_count):
        return f"{scanned} should be {counts}"
    if bool(scanned.reason) != bool(scanned.rejected_count):
        return f"{scanned} has the wrong reason"
    if not scanned.rejected_count:
        return "accepted"
    filter_objects(signal, message)
    try:
        pruned = CLASSES[signal].FromString(prune(signal, fenced))
    except DecodeError as error:
        return f"pruned to an invalid body: {error}"
    return "pruned" if is_same(pruned, message) else "pruned differently"


def is_same(one: Message, other: Message) -> bool:
    try:
        return serialized(one) == serialized(other)
    except EncodeError:
        # Protobuf writes one nesting level less than it reads. Messages with a NaN are never equal.
        return str(one) == str(other)


def serialized(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)


def count_of(signal: Signal, message: Message) -> tuple[int, int]:
    """Return the number of storable records and of the others."""
    stored = rejected = 0
    for records, is_storable in containers(signal, message):
        for record in records:
            if is_storable(record):
                stored += 1
            else:
                rejected += 1
    return stored, rejected


def filter_objects(signal: Signal, message: Message) -> None:
    """Remove the records that cannot be stored."""
    for records, is_storable in containers(signal, message):
        for index in reversed(range(len(records))):
            if not is_storable(records[index]):
                del records[index]


def containers(signal: Signal, message: Any) -> Iterator[tuple[Any, Callable[[Any], bool]]]:
    """Yield every list of records with its rule for storable ones."""
    if signal is Signal.LOGS:
        for resource in message.resource_logs:
            for scope in resource.scope_logs:
                yield scope.log_records, is_log_record
    elif signal is Signal.TRACES:
        for resource in message.resource_spans:
            for scope in resource.scope_spans:
                yield scope.spans, is_span
    else:
        for resource in message.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    kind = metric.WhichOneof("data")
                    if kind is not None:
                        yield getattr(metric, kind).data_points, POINTS[kind]


def is_log_record(record: Any) -> bool:
    return (
        len(record.trace_id) in (0, 16)
        and len(record.span_id) in (0, 8)
        and record.time_unix_nano <= INT64_MAX
        and record.observed_time_unix_nano <= INT64_MAX
    )


def is_span(span: Any) -> bool:
    return (
        len(span.trace_id) in (0, 16)
        and len(span.span_id) in (0, 8)
        and len(span.parent_span_id) in (0, 8)
        and span.start_time_unix_nano <= INT64_MAX
        and span.end_time_unix_nano <= INT64_MAX
        and all(event.time_unix_nano <= INT64_MAX for event in span.events)
        and all(len(link.trace_id) in (0, 16) for link in span.links)
        and all(len(link.span_id) in (0, 8) for link in span.links)
    )


def is_point(point: Any) -> bool:
    return bool(max(point.start_time_unix_nano, point.time_unix_nano) <= INT64_MAX)


def is_number(point: Any) -> bool:
    return is_point(point) and all(map(is_exemplar, point.exemplars))


def is_exemplar(exemplar: Any) -> bool:
    return (
        exemplar.time_unix_nano <= INT64_MAX
        and len(exemplar.trace_id) in (0, 16)
        and len(exemplar.span_id) in (0, 8)
    )


def is_histogram(point: Any) -> bool:
    return (
        is_number(point)
        and point.count <= INT64_MAX
        and max(point.bucket_counts, default=0) <= INT64_MAX
    )


def is_exponential(point: Any) -> bool:
    return (
        is_number(point)
        and point.count <= INT64_MAX
        and point.zero_count <= INT64_MAX
        and max(point.positive.bucket_counts, default=0) <= INT64_MAX
        and max(point.negative.bucket_counts, default=0) <= INT64_MAX
    )


def is_summary(point: Any) -> bool:
    return is_point(point) and point.count <= INT64_MAX


POINTS: dict[str, Callable[[Any], bool]] = {
    "gauge": is_number,
    "sum": is_number,
    "histogram": is_histogram,
    "exponential_histogram": is_exponential,
    "summary": is_summary,
}


def has_group(message: Descriptor, data: bytes) -> bool:
    """Return True if a valid body contains a group."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        if tag & 7 in (3, 4):
            return True
        if tag & 7 == 0:
            _, at = read_varint(data, at)
        elif tag & 7 == 1:
            at += 8
        elif tag & 7 == 5:
            at += 4
        else:
            length, at = read_varint(data, at)
            field = message.fields_by_number.get(tag >> 3)
            inner = field.message_type if field is not None else None
            if inner is not None and has_group(inner, data[at : at + length]):
                return True
            at += length
    return False
