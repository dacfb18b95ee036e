"""Checking batches from Kafka clients: CPU time, beside plain Python and a full decompression.

The peer of the check is the tests' reference, which decodes every record in Python. Both check the
same batches in turns; CPU time is measured, so other processes do not count. The peer of each
compressed case is decompression alone, into a buffer of the right size. Also how often another
thread runs while batches are checked: once per switch interval of the interpreter if the GIL is
held, several times as often if it is not. Prints one JSON line last; exits 1 when a bar is missed.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Callable
from statistics import median

import cramjam

from frazil.log import Compression, Record, encode_batch
from frazil.log.format.batch import HEADER_BYTES
from frazil.log.format.compression import decompress
from frazil.log.produce import validate_produced, warm
from tests.log.produce.reference import validate_by_records

ROUNDS = 15
SHAPES = {"1,000 x 1 KB": (1000, 1000), "10,000 x 100 B": (10_000, 100), "16 x 1 KB": (16, 1000)}
BARS = {"1,000 x 1 KB": 20.0, "10,000 x 100 B": 50.0, "16 x 1 KB": 4.0}
"""Batches/s relative to the peer."""
SIZES = {"16 KB": 16, "1 MB": 1000}
"""Records of 1 KB."""
DECOMPRESS_BARS = {"16 KB": 0.2, "1 MB": 0.4}
"""Batches/s relative to decompression alone."""
WATCH_S = 0.5
SLEEP_S = 0.0002

Case = dict[str, object]


def batch_of(count: int, value_bytes: int, compression: Compression = Compression.NONE) -> bytes:
    """Orders as JSON, about 5 times smaller when compressed well."""
    chance = random.Random(count)

    def value(number: int) -> bytes:
        fields = {"order": number, "user": chance.getrandbits(40), "price": chance.random()}
        text = json.dumps(fields | {"status": "accepted", "currency": "EUR"})
        return (text * (1 + value_bytes // len(text)))[:value_bytes].encode()

    records = [
        Record(offset=i, timestamp_ms=1_790_000_000_000 + i, key=b"%d" % i, value=value(i))
        for i in range(count)
    ]
    return encode_batch(records, compression=compression)


def cpu_us(work: Callable[[], object]) -> float:
    """CPU time of this thread for one call."""
    begin = time.thread_time_ns()
    calls = 0
    while calls < 3 or time.thread_time_ns() - begin < 3_000_000:
        work()
        calls += 1
    return (time.thread_time_ns() - begin) / calls / 1000


def compare(name: str, ours: Callable[[], object], peer: Callable[[], object], bar: float) -> Case:
    times = [(cpu_us(ours), cpu_us(peer)) for _ in range(ROUNDS)]
    our_us, peer_us = (min(column) for column in zip(*times, strict=True))
    ratio = peer_us / our_us
    return case_of(name, round(our_us, 1), round(peer_us, 1), "us", ratio, bar)


def case_of(name: str, ours: float, peer: float, unit: str, ratio: float, bar: float) -> Case:
    case: Case = {
        "case": name,
        "ours": ours,
        "peer": peer,
        "unit": unit,
        "ratio": round(ratio, 2),
        "bar": bar,
        "ok": ratio >= bar,
    }
    print(json.dumps(case), flush=True)
    return case


def checked(name: str) -> Case:
    data = batch_of(*SHAPES[name])
    bar = BARS[name]
    assert validate_produced(data)[:2] == validate_by_records(data)[:2]
    return compare(
        f"check {name}", lambda: validate_produced(data), lambda: validate_by_records(data), bar
    )


INTO: dict[Compression, Callable[[bytes, bytearray], int]] = {
    Compression.GZIP: cramjam.gzip.decompress_into,
    Compression.LZ4: cramjam.lz4.decompress_into,
    Compression.ZSTD: cramjam.zstd.decompress_into,
}


def decompressed(size: str, compression: Compression) -> Case:
    data = batch_of(SIZES[size], 1000, compression)
    packed = data[HEADER_BYTES:]
    room = bytearray(len(decompress(compression, packed)))
    into = INTO.get(compression)

    def peer() -> object:
        return into(packed, room) if into else decompress(compression, packed)

    name = f"check {size} of {compression.name.lower()}"
    return compare(name, lambda: validate_produced(data), peer, DECOMPRESS_BARS[size])


def wakes_per_s(work: Callable[[], object]) -> float:
    """How often a thread that sleeps a little runs while another one works."""
    stop = threading.Event()

    def loop() -> None:
        while not stop.is_set():
            work()

    thread = threading.Thread(target=loop)
    thread.start()
    begin, wakes = time.perf_counter(), 0
    while time.perf_counter() - begin < WATCH_S:
        time.sleep(SLEEP_S)
        wakes += 1
    stop.set()
    thread.join()
    return wakes / WATCH_S


def other_threads() -> Case:
    data = batch_of(*SHAPES["10,000 x 100 B"])
    rounds = [
        (
            wakes_per_s(lambda: validate_produced(data)),
            wakes_per_s(lambda: validate_by_records(data)),
        )
        for _ in range(5)
    ]
    ours, peer = (median(column) for column in zip(*rounds, strict=True))
    return case_of("other threads meanwhile", round(ours), round(peer), "1/s", ours / peer, 1.0)


def main() -> int:
    warm()
    cases = [checked(name) for name in SHAPES]
    cases += [decompressed(size, codec) for size in SIZES for codec in list(Compression)[1:]]
    cases.append(other_threads())
    print(json.dumps({"bench": "kafka_validate", "cases": cases}))
    return 0 if all(case["ok"] for case in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
