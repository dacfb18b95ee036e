"""Numbered log records that say whether they must go, and how to send many of them.

The text of a record says what must happen to it: `GONE` rows are older than their rule, `KEPT` rows
are not, and a `person` may be erased. No age is near the cut of its rule, so a run may pass
midnight.
"""

from __future__ import annotations

import http.client
import struct
from dataclasses import dataclass, field

import numpy as np

DAY_NS = 86_400 * 10**9
SERVICES = ("shop", "debug", "audit", "GONE-service")
RULES = """
[retention]
logs = "30d"
"logs where service_name = 'debug'" = "7d"
"logs where service_name = 'audit'" = "365d"
"""
LIMITS = (30, 7, 365, 30)
"""Days, by service."""
AGES = (
    (*range(10), *range(40, 50)),
    (*range(3), *range(12, 18)),
    (*range(10), *range(100, 110)),
    tuple(range(100, 105)),
)
"""Days, by service."""
PEOPLE = 5
"""A cycle sends records of so many people, the first of whom is erased at its end."""
PERSON_EVERY = 10
REQUEST_ROWS = 2_000
NOBODY = -1


@dataclass(slots=True)
class Rows:
    """All records that were acknowledged. The number of a record is its index."""

    is_old: np.ndarray = field(default_factory=lambda: np.empty(0, np.bool_))
    person: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.is_old)

    def add(self, is_old: np.ndarray, person: np.ndarray) -> None:
        self.is_old = np.concatenate([self.is_old, is_old])
        self.person = np.concatenate([self.person, person])

    def kept(self, erased_below: int) -> np.ndarray:
        """Return the numbers that must be there once people below this one were erased."""
        is_erased = (self.person != NOBODY) & (self.person < erased_below)
        return np.flatnonzero(~self.is_old & ~is_erased)

    def of_person(self, person: int) -> np.ndarray:
        return np.flatnonzero((self.person == person) & ~self.is_old)


def send(port: int, rows: Rows, count: int, cycle: int, now_ns: int) -> None:
    """Send `count` more records; returns when all were acknowledged."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    end = len(rows) + count
    while len(rows) < end:
        numbers = np.arange(len(rows), min(end, len(rows) + REQUEST_ROWS))
        service = numbers % len(SERVICES)
        turn = numbers // len(SERVICES)
        age = np.array([AGES[s][t % len(AGES[s])] for s, t in zip(service, turn, strict=True)])
        is_old = age > np.array(LIMITS)[service]
        has_person = numbers % PERSON_EVERY == PERSON_EVERY - 1
        person = np.where(has_person, cycle + numbers // PERSON_EVERY % PEOPLE, NOBODY)
        body = _request(numbers, service, now_ns - age * DAY_NS, is_old, person)
        connection.request("POST", "/v1/logs", body, {"Content-Type": "application/x-protobuf"})
        response = connection.getresponse()
        assert response.status == 200, response.read()
        response.read()
        rows.add(is_old, person)
    connection.close()


def text_of(number: int, is_old: bool, person: int) -> bytes:
    who = b"nobody......" if person == NOBODY else b"person-%04d@" % person
    return b"%s-%010d-%s" % (b"GONE" if is_old else b"KEPT", number, who)


def marker_of(person: int) -> bytes:
    return b"person-%04d@" % person


def _request(
    numbers: np.ndarray,
    service: np.ndarray,
    times_ns: np.ndarray,
    is_old: np.ndarray,
    person: np.ndarray,
) -> bytes:
    """Encode an OTLP request by hand: a protobuf library would take most of the time of a run."""
    resources: list[list[bytes]] = [[] for _ in SERVICES]
    for number, at, time_ns, old, who in zip(
        numbers.tolist(),
        service.tolist(),
        times_ns.tolist(),
        is_old.tolist(),
        person.tolist(),
        strict=True,
    ):
        text = text_of(number, old, who)
        value = b"\x0a" + bytes([len(text)]) + text
        record = b"\x09" + struct.pack("<Q", time_ns) + b"\x2a" + bytes([len(value)]) + value
        record += b"\x59" + struct.pack("<Q", number)
        resources[at].append(b"\x12" + bytes([len(record)]) + record)
    parts = []
    for name, records in zip(SERVICES, resources, strict=True):
        value = b"\x0a" + bytes([len(name)]) + name.encode()
        pair = _field(1, b"service.name") + _field(2, value)
        resource = _field(1, _field(1, pair))
        parts.append(_field(1, resource + _field(2, b"".join(records))))
    return b"".join(parts)


def _field(number: int, data: bytes) -> bytes:
    """Return a length-delimited field."""
    length, size = b"", len(data)
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data
