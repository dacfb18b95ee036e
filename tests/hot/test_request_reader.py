"""Every request of the log is decoded once, and none stops the others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import TooLarge
from frazil.hot.request_reader import requests_of
from frazil.log import Log, Record, append_of_records
from frazil.model import Rand
from frazil.model.arrow.decoder.fallback import CRASHES, decode_prefix
from frazil.model.arrow.types import Decoded, ExportRequest
from tests.hot.build import LINES, LOG, TOPIC, decode
from tests.sim.clock import SimClock
from tests.sim.disk import SimDisk


@pytest.mark.parametrize(
    ("begin", "end", "offsets"), [(0, 6, range(6)), (1, 5, range(1, 5)), (4, 4, range(0))]
)
def test_requests_are_limited_to_the_given_offsets(begin: int, end: int, offsets: range) -> None:
    """A batch may have more records than requested, and a record may be empty."""
    log = Log.open(SimDisk(), LOG, clock=SimClock(), rand=Rand(1), threaded=False)
    log.create_topic(TOPIC)
    for first in (0, 3):
        values = [b"a", None, b"c"]
        records = [
            Record(offset=0, timestamp_ms=first + n, key=None, value=value)
            for n, value in enumerate(values)
        ]
        log.append(TOPIC, append_of_records(records))
    log.writer.step()
    found = requests_of(log.reader(TOPIC, "earliest").read(), 7, begin, end)
    assert found == [
        ExportRequest(
            partition=7, offset=offset, ingest_time_ms=offset, body=(b"a", b"", b"c")[offset % 3]
        )
        for offset in offsets
    ]
    log.close()


@given(st.lists(st.sampled_from([b"crash", b"s t body", b"bad"]), min_size=1, max_size=12))
def test_a_decoder_failure_affects_only_its_own_request(bodies: list[bytes]) -> None:
    """Each request becomes rows or a dead letter with its bytes, in order."""
    requests = [
        ExportRequest(partition=0, offset=number, ingest_time_ms=1, body=body)
        for number, body in enumerate(bodies)
    ]
    crashes = CRASHES.value(signal="logs")
    rows, dead, done = [], [], 0
    while done < len(requests):
        decoded, count = decode_prefix(decode, "logs", requests[done:], LINES)
        assert count > 0
        rows += decoded.batch["_offset"].to_pylist()
        dead += [(letter.offset, letter.payload) for letter in decoded.dead]
        done += count
    numbered = list(enumerate(bodies))
    assert rows == [number for number, body in numbered if body == b"s t body"]
    assert dead == [(number, body) for number, body in numbered if body != b"s t body"]
    assert CRASHES.value(signal="logs") == crashes + bodies.count(b"crash")


def test_requests_too_large_together_are_decoded_in_halves() -> None:

    def small(signal: str, requests: Sequence[ExportRequest]) -> Decoded:
        if len(requests) > 3:
            raise TooLarge("call again with fewer")
        return decode(signal, requests)

    requests = [
        ExportRequest(partition=0, offset=n, ingest_time_ms=1, body=b"s t body") for n in range(20)
    ]
    decoded, count = decode_prefix(small, "logs", requests, LINES)
    assert count == 2 and decoded.batch["_offset"].to_pylist() == [0, 1]


def test_out_of_memory_does_not_create_dead_letters() -> None:

    def exhausted(_: str, __: Sequence[ExportRequest]) -> Decoded:
        raise MemoryError

    with pytest.raises(MemoryError):
        decode_prefix(
            exhausted,
            "logs",
            [ExportRequest(partition=0, offset=0, ingest_time_ms=1, body=b"s t body")],
            LINES,
        )
