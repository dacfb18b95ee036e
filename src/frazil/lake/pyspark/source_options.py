"""Options of the data source, validated, and positions as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frazil.errors import Malformed
from frazil.model import MiB, TopicPartition
from frazil.settings import LakeConfig

if TYPE_CHECKING:
    from frazil.lake.read.offset_range import OffsetRangeReader

BYTES_PER_TRIGGER = 64 * MiB
"""About 200,000 log records: a batch takes seconds, and its memory is bounded."""
EARLIEST, LATEST = "earliest", "latest"
SINCE = "since"
"""Key in a position, beside the topics: where its query started."""
OPTIONS = {
    "path": "the data folder",
    "table": "logs, spans or metrics",
    "columns": "column names separated by commas (default: all)",
    "startingOffsets": "earliest (default), latest, or a position as JSON; for new queries only",
    "endingOffsets": "latest, or a position as JSON (default for a stream: no end)",
    "maxBytesPerTrigger": f"bytes of the log per batch of a stream (default {BYTES_PER_TRIGGER})",
    "maxOffsetsPerTrigger": "requests per batch of a stream (default: no limit)",
}
"""Option -> description."""

Offsets = str | dict[TopicPartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Validated options."""

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
        """Whether a stream has an end."""
        return self.ending is not None

    def begin(self, reader: OffsetRangeReader) -> dict[TopicPartition, int]:
        """Return the first position. Partitions that are not values start with their first row."""
        if self.starting == LATEST:
            return reader.end()
        earliest = reader.earliest()
        return earliest if isinstance(self.starting, str) else {**earliest, **self.starting}

    def end(self, reader: OffsetRangeReader) -> dict[TopicPartition, int]:
        """Return the position after the last row. Partitions that are not values have no limit."""
        latest = reader.end()
        if not isinstance(self.ending, dict):
            return latest
        for (topic, partition), offset in self.ending.items():
            end = latest.get(TopicPartition(topic, partition), 0)
            if offset > end:
                raise Malformed(f"endingOffsets is {offset} for {partition}, which ends at {end}")
        return {**latest, **self.ending}


def parse_options(options: Mapping[str, str], lake: LakeConfig | None) -> SourceOptions:
    """Validate options. `Malformed` names the one that is missing or wrong."""
    known = {name.lower(): name for name in OPTIONS}
    values = {}
    for name, value in options.items():
        if name.lower() not in known:
            raise Malformed(f"there is no option {name!r}; the options are {', '.join(OPTIONS)}")
        values[known[name.lower()]] = value
    for name in ("path", "table"):
        if not values.get(name):
            raise Malformed(f"option {name!r} is missing: {OPTIONS[name]}")
    columns = values.get("columns")
    return SourceOptions(
        folder=str(Path(values["path"]).absolute()),
        table=values["table"],
        columns=None if columns is None else tuple(part.strip() for part in columns.split(",")),
        starting=_offsets("startingOffsets", values.get("startingOffsets", EARLIEST), EARLIEST),
        ending=_offsets("endingOffsets", values["endingOffsets"])
        if "endingOffsets" in values
        else None,
        bytes_max=_count(values, "maxBytesPerTrigger") or BYTES_PER_TRIGGER,
        offsets_max=_count(values, "maxOffsetsPerTrigger"),
        lake=lake or LakeConfig(),
    )


def _offsets(name: str, text: str, *words: str) -> Offsets:
    if text in (LATEST, *words):
        return text
    try:
        return Position.of(json.loads(text)).offsets
    except (ValueError, TypeError, AttributeError):
        raise Malformed(
            f"option {name!r} is {text!r}; it must be {', '.join((*words, LATEST))}, or JSON like "
            '{"otlp_logs": {"0": 17}}'
        ) from None


def _count(values: Mapping[str, str], name: str) -> int | None:
    if name not in values:
        return None
    if not values[name].isdecimal() or int(values[name]) < 1:
        raise Malformed(f"option {name!r} is {values[name]!r}; it must be a positive integer")
    return int(values[name])


@dataclass(frozen=True, slots=True)
class Position:
    """Where a query is, and where it started: the next offset of each partition."""

    offsets: dict[TopicPartition, int]
    since: dict[TopicPartition, int]

    @classmethod
    def of(cls, position: Mapping[str, Any]) -> Position:
        """Convert from JSON. A position written by a user need not have `since`."""
        topics = {topic: offsets for topic, offsets in position.items() if topic != SINCE}
        return cls(offsets=_flat(topics), since=_flat(position.get(SINCE, {})))

    def as_json(self) -> dict[str, Any]:
        return {**nested(self.offsets), SINCE: nested(self.since)}

    def begin_as_json(self) -> dict[str, Any]:
        return Position(offsets=self.since, since=self.since).as_json()


def _flat(position: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in position.items()
        for partition, offset in partitions.items()
    }


def nested(position: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Return offsets by topic and partition, for JSON."""
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(position.items()):
        topics.setdefault(topic, {})[str(partition)] = offset
    return topics
