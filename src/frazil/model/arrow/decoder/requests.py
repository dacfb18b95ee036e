"""Walk requests into an arena, and report the invalid ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from frazil.errors import TooLarge
from frazil.model.arrow.decoder.arena import (
    ADDRESS,
    ARENA_BEGIN,
    BAD,
    HEAD_WORDS,
    HEADS,
    LENGTH,
    LEVELS,
    LIST_MAX,
    ROOM,
    STATE_WORDS,
    TAILS,
    TOTALS,
    UNKNOWN_SERVICE,
    USED,
)
from frazil.model.arrow.decoder.buffers import build_chain
from frazil.model.arrow.decoder.dispatch import DISPATCH, VALUE
from frazil.model.arrow.decoder.fields import IS_STRING
from frazil.model.arrow.decoder.walk import FRAME_WORDS, walk
from frazil.model.arrow.schemas import SERVICE_UNKNOWN
from frazil.model.arrow.types import DeadLetter, ExportRequest
from frazil.model.protobuf.memory import SLACK_BYTES, Words
from frazil.model.protobuf.reader import DEPTH_MAX, FAULTS, WELL

BODY_BYTES_MAX = 1 << 28
"""Limit of all requests of a call. As text they are at most six times as long, which fits
Arrow's 32-bit offsets."""
ARENA_WORDS_MAX = 1 << 27
"""One gigabyte. A hostile request needs a hundred times its size."""
UNKNOWN_NAME = np.frombuffer(SERVICE_UNKNOWN.encode() + bytes(SLACK_BYTES), np.uint8)


@dataclass(frozen=True, slots=True, eq=False)
class WalkedRequests:
    """Requests, and the arena a walk filled from them."""

    requests: Sequence[ExportRequest]
    bodies: bytes
    """All bodies concatenated. The arena has addresses into this."""
    arena: Words
    state: Words
    found: Words
    """Per request: fault, its position, and the number of records up to its end."""

    def level(self, level: int) -> Words:
        """Return the nodes of a level, in the order of the requests."""
        head = HEADS + HEAD_WORDS * level
        nodes: Words = build_chain(self.arena, head, self.state[TOTALS + level])
        return nodes

    @property
    def list_max(self) -> int:
        return int(self.state[LIST_MAX])

    @property
    def text_room(self) -> int:
        """Upper bound of the bytes of all values as text."""
        return int(self.state[ROOM])

    def record_counts(self) -> Words:
        """Return the number of records per request."""
        counts: Words = np.diff(self.found[:, 2], prepend=0)
        return counts

    def dead_requests(self) -> Iterator[tuple[int, DeadLetter]]:
        """Yield number and dead letter of each invalid request."""
        for number in np.flatnonzero(self.found[:, 0] != WELL).tolist():
            fault, position, _ = self.found[number].tolist()
            reason = f"not an OTLP request: {FAULTS[fault]}, at byte {position}"
            yield number, dead_request(self.requests[number], reason)

    def dead_records(
        self, records: Words, numbers: Words, rows: Words
    ) -> Iterator[tuple[int, DeadLetter]]:
        """Records that can never be rows, with the numbers of their requests."""
        address = _address_of(self.bodies)
        for record, number, row in zip(records, numbers, rows, strict=True):
            begin = int(self.arena[record + ADDRESS]) - address
            request = self.requests[number]
            yield (
                int(number),
                DeadLetter(
                    partition=request.partition,
                    offset=request.offset,
                    row=int(row),
                    reason=DISPATCH.reasons[int(self.arena[record + BAD])],
                    payload=self.bodies[begin : begin + int(self.arena[record + LENGTH])],
                ),
            )


def dead_request(request: ExportRequest, reason: str) -> DeadLetter:
    return DeadLetter(
        partition=request.partition,
        offset=request.offset,
        row=None,
        reason=reason,
        payload=request.body,
    )


def walk_requests(signal: str, requests: Sequence[ExportRequest]) -> WalkedRequests:
    """Walk all requests. Raises `TooLarge` if they are too much for one call."""
    lengths = np.array([len(request.body) for request in requests], np.int64)
    ends = np.cumsum(lengths)
    size = int(ends[-1]) if len(ends) else 0
    if size > BODY_BYTES_MAX:
        raise TooLarge(f"requests of {size} bytes, which is more than {BODY_BYTES_MAX}")
    bodies = join([request.body for request in requests])
    arena = np.empty(ARENA_BEGIN + size // 2, np.int64)
    arena[:ARENA_BEGIN] = 0
    service = UNKNOWN_SERVICE + VALUE
    arena[service : service + 3] = IS_STRING, UNKNOWN_NAME.ctypes.data, len(SERVICE_UNKNOWN)
    state = np.zeros(STATE_WORDS, np.int64)
    state[USED] = ARENA_BEGIN
    state[TAILS : TAILS + LEVELS] = HEADS + HEAD_WORDS * np.arange(LEVELS)
    frames = np.empty(DEPTH_MAX * FRAME_WORDS, np.int64)
    found = np.zeros((len(requests), 3), np.int64)
    address, root = _address_of(bodies), DISPATCH.roots[signal]
    done = 0
    while True:
        done = walk(
            address, ends, done, root, DISPATCH.table, DISPATCH.rules, arena, state, frames, found
        )
        if done == len(requests):
            return WalkedRequests(requests, bodies, arena, state, found)
        arena = _grown(arena, int(state[USED]))


def join(bodies: list[bytes]) -> bytes:
    """Concatenate bodies, with slack at the end."""
    return b"".join([*bodies, bytes(SLACK_BYTES)])


def _grown(arena: Words, used: int) -> Words:
    if 2 * len(arena) > ARENA_WORDS_MAX:
        raise TooLarge(f"the decoded requests take more than {8 * ARENA_WORDS_MAX} bytes of memory")
    grown = np.empty(2 * len(arena), np.int64)
    grown[:used] = arena[:used]
    return grown


def _address_of(data: bytes) -> int:
    address: int = np.frombuffer(data, np.uint8).ctypes.data
    return address
