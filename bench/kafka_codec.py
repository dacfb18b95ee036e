"""Codecs of the Kafka port: microseconds per message, and what the first use of a version costs.

CPU time of one process is measured, so other processes do not count. Prints one JSON line last;
exits 1 when a bar is missed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable
from time import process_time

from frazil.kafka.wire.apis import APIS
from frazil.kafka.wire.codec import decoder_of, encoder_of
from frazil.kafka.wire.headers import (
    decode_request,
    decode_request_header,
    encode_request,
    encode_response,
)
from frazil.kafka.wire.messages.fetch import FetchRequest, FetchResponse
from frazil.kafka.wire.messages.produce import ProduceRequest
from frazil.kafka.wire.schema import KafkaMessage
from frazil.model import KiB, MiB

ROUNDS = 7
CALLS = 20_000
PRODUCE_US_MAX = 7.0
FETCH_REQUEST_US_MAX = 5.0
FETCH_RESPONSE_US_MAX = 10.0
FIRST_USE_MS_MAX = 25.0
"""The slowest version of all, compiled."""

IMPORT = """
import time, msgspec, frazil.model, frazil.errors, typing, importlib, dataclasses, linecache
begin = time.process_time()
{}
print((time.process_time() - begin) * 1000)
"""
IMPORT_ONE = "import frazil.kafka.wire.headers"
IMPORT_ALL = (
    "from frazil.kafka.wire.apis import APIS\nfor api in APIS.values(): api.request, api.response"
)


def main() -> int:
    results: dict[str, float] = {}
    missed = []
    for name, call, bar in cases():
        results[name] = round(microseconds(call), 2)
        missed += [name] if results[name] > bar else []
        print(f"{name:36} {results[name]:6.2f} us   at most {bar:.0f}")
    compiled = first_uses()
    results["compile_median_ms"] = round(compiled[len(compiled) // 2], 2)
    results["compile_max_ms"] = round(compiled[-1], 2)
    missed += ["compile_max_ms"] if compiled[-1] > FIRST_USE_MS_MAX else []
    print(f"first use of a version: median {results['compile_median_ms']} ms,", end=" ")
    print(f"slowest {results['compile_max_ms']} ms, {len(compiled)} functions in all")
    results["import_ms"] = imported(IMPORT_ONE)
    results["import_all_ms"] = imported(IMPORT_ALL)
    print(f"import: {results['import_ms']} ms; with the classes of all APIs", end=" ")
    print(f"{results['import_all_ms']} ms")
    print(json.dumps({**results, "missed": missed}))
    return 1 if missed else 0


def cases() -> list[tuple[str, Callable[[], object], float]]:
    """Return what is measured: name, call, bar. Header and message of one partition each."""
    found: list[tuple[str, Callable[[], object], float]] = []
    for version in (7, 12):
        for size in (16 * KiB, MiB):
            frame = frame_of(produced(bytes(size)), version)
            name = f"produce_request_v{version}_{size // KiB}_KiB"
            found.append((name, decoding(frame), PRODUCE_US_MAX))
    for version in (11, 12, 18):
        request = frame_of(asked(), version)
        found.append((f"fetch_request_v{version}", decoding(request), FETCH_REQUEST_US_MAX))
        response = encoding(version, bytes(MiB))
        found.append((f"fetch_response_v{version}_1024_KiB", response, FETCH_RESPONSE_US_MAX))
    return found


def produced(records: bytes) -> ProduceRequest:
    partition = ProduceRequest.PartitionProduceData(index=0, records=records)
    topic = ProduceRequest.TopicProduceData(name="orders", partition_data=[partition])
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


def asked() -> FetchRequest:
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=1_000_000)
    topic = FetchRequest.FetchTopic(
        topic="orders", topic_id=bytes(range(16)), partitions=[partition]
    )
    return FetchRequest(max_wait_ms=500, min_bytes=1, topics=[topic])


def frame_of(request: KafkaMessage, version: int) -> bytes:
    return b"".join(encode_request(request, version, 7, "rdkafka"))[4:]


def decoding(frame: bytes) -> Callable[[], object]:
    return lambda: decode_request(decode_request_header(frame), frame)


def encoding(version: int, records: bytes) -> Callable[[], object]:
    def encode() -> object:
        partition = FetchResponse.PartitionData(
            partition_index=0,
            high_watermark=1_000_000,
            last_stable_offset=1_000_000,
            records=records,
        )
        topic = FetchResponse.FetchableTopicResponse(topic="orders", partitions=[partition])
        return encode_response(FetchResponse(responses=[topic]), version, 7)

    return encode


def microseconds(call: Callable[[], object]) -> float:
    best = min(timeit.repeat(call, number=CALLS, repeat=ROUNDS, timer=process_time))
    return best / CALLS * 1e6


def first_uses() -> list[float]:
    """Return the milliseconds that compiling each function takes, sorted."""
    found = []
    for api in APIS.values():
        for kind in (api.request, api.response):
            for version in range(api.versions.first, api.versions.last + 1):
                for compiled in (decoder_of, encoder_of):
                    begin = process_time()
                    compiled(kind, version)
                    found.append((process_time() - begin) * 1000)
    return sorted(found)


def imported(statement: str) -> float:
    """Return the milliseconds of an import in a new process that finds bytecode."""
    command = [sys.executable, "-c", IMPORT.format(statement)]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        runs = [
            subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
            for _ in range(5)
        ]
    return round(min(float(run.stdout) for run in runs), 1)


if __name__ == "__main__":
    sys.exit(main())
