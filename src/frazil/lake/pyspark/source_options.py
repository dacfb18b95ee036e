"""What somebody asks the data source for: its options, checked, and positions as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frazil.errors import Malformed
from frazil.lake.config import LakeConfig
from frazil.model import MiB

if TYPE_CHECKING:
    from frazil.lake.read.offset_range import OffsetRangeReader

BYTES_PER_TRIGGER = 64 * MiB
"""Of the log, about 200,000 log records: a batch takes seconds, and its memory is bounded."""
EARLIEST, LATEST = "earliest", "latest"
SINCE = "since"
"""Beside the topics of a position: where its query began."""
OPTIONS = {
    "path": "the data folder",
    "table": "logs, spans or metrics",
    "columns": "the wanted columns, by commas; all without",
    "startingOffsets": "earliest (without), latest, or a position as JSON; only for a new query",
    "endingOffsets": "latest, or a position as JSON; a stream without goes on for ever",
    "maxBytesPerTrigger": f"bytes of the log in one batch of a stream, {BYTES_PER_TRIGGER} without",
    "maxOffsetsPerTrigger": "requests in one batch of a stream",
}
"""Option -> what it says."""

Offsets = str | dict[tuple[str, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Options, understood."""

    folder: str
    table: str
    columns: tuple[str, ...] | None
    starting: Offsets
    ending: Offsets | None
    bytes_max: int
    offsets_max: int | None
    lake: LakeConfig

    @property
    def is_bounded(self) -> bool:
        """Does a stream have an end?"""
        return self.ending is not None

    def begin(self, history: OffsetRangeReader) -> dict[tuple[str, int], int]:
        """The first position. Partitions that are not named begin with their first row."""
        if self.starting == LATEST:
            return history.end()
        found = history.earliest()
        return found if isinstance(self.starting, str) else {**found, **self.starting}

    def end(self, history: OffsetRangeReader) -> dict[tuple[str, int], int]:
        """The position behind the last row. Partitions that are not named end where they end."""
        found = history.end()
        if not isinstance(self.ending, dict):
            return found
        for place, offset in self.ending.items():
            if offset > found.get(place, 0):
                raise Malformed(
                    f"endingOffsets has {place[0]}/{place[1]} up to {offset}, and it goes up to "
                    f"{found.get(place, 0)}"
                )
        return {**found, **self.ending}


def asked_of(options: Mapping[str, str], lake: LakeConfig | None) -> SourceOptions:
    """What these options say. `Malformed` names the one that is missing or wrong."""
    known = {name.lower(): name for name in OPTIONS}
    given = {}
    for name, value in options.items():
        if name.lower() not in known:
            raise Malformed(f"there is no option {name!r}; there are {', '.join(OPTIONS)}")
        given[known[name.lower()]] = value
    for name in ("path", "table"):
        if not given.get(name):
            raise Malformed(f"option {name!r} is missing: {OPTIONS[name]}")
    columns = given.get("columns")
    return SourceOptions(
        folder=str(Path(given["path"]).absolute()),
        table=given["table"],
        columns=None if columns is None else tuple(part.strip() for part in columns.split(",")),
        starting=_offsets("startingOffsets", given.get("startingOffsets", EARLIEST), EARLIEST),
        ending=_offsets("endingOffsets", given["endingOffsets"])
        if "endingOffsets" in given
        else None,
        bytes_max=_count(given, "maxBytesPerTrigger") or BYTES_PER_TRIGGER,
        offsets_max=_count(given, "maxOffsetsPerTrigger"),
        lake=lake or LakeConfig(),
    )


def _offsets(name: str, text: str, *words: str) -> Offsets:
    if text in (LATEST, *words):
        return text
    try:
        return Position.of(json.loads(text)).offsets
    except (ValueError, TypeError, AttributeError):
        raise Malformed(
            f"option {name!r} is {text!r}; it must be {', '.join((*words, LATEST))}, or like "
            '{"otlp_logs": {"0": 17}}'
        ) from None


def _count(given: Mapping[str, str], name: str) -> int | None:
    if name not in given:
        return None
    if not given[name].isdecimal() or int(given[name]) < 1:
        raise Malformed(f"option {name!r} is {given[name]!r}; it must be a number above 0")
    return int(given[name])


@dataclass(frozen=True, slots=True)
class Position:
    """How far a query is, and where it began: the next offset of each partition."""

    offsets: dict[tuple[str, int], int]
    since: dict[tuple[str, int], int]

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Position:
        """Out of JSON. One that people write need not say where it began."""
        topics = {topic: offsets for topic, offsets in found.items() if topic != SINCE}
        return cls(offsets=_flat(topics), since=_flat(found.get(SINCE, {})))

    def as_json(self) -> dict[str, Any]:
        return {**nested(self.offsets), SINCE: nested(self.since)}

    def begin_as_json(self) -> dict[str, Any]:
        return Position(offsets=self.since, since=self.since).as_json()


def _flat(found: Mapping[str, Mapping[str, int]]) -> dict[tuple[str, int], int]:
    return {
        (topic, int(partition)): int(offset)
        for topic, partitions in found.items()
        for partition, offset in partitions.items()
    }


def nested(position: Mapping[tuple[str, int], int]) -> dict[str, dict[str, int]]:
    """Offsets as JSON has them."""
    made: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(position.items()):
        made.setdefault(topic, {})[str(partition)] = offset
    return made
