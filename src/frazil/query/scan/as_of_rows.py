"""The rows of an AS OF table.

By version: exactly the rows of a snapshot. By time: the rows that a query of both tiers would have
returned at that time,

    lake(S) + the rows at or above W(S) that had been accepted

where S is the last snapshot at that time and W(S) its offsets. Some rows above W(S) are in the lake
by now, in data files that may have other rows as well, and some are in the hot tier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import Unavailable, Unknown
from frazil.model import TopicPartition
from frazil.query.sql.as_of import AsOf

if TYPE_CHECKING:
    from frazil.hot import Piece
    from frazil.lake import LakeView, SnapshotInfo, TableFile, TableView

US_PER_MS = 1000
LISTED_MAX = 5
"""Snapshots listed in an error."""

_TIME = 'Timestamp(Microsecond, Some("UTC"))'

Offsets = Mapping[TopicPartition, int]


def snapshot_by_version(
    lake: LakeView | None, view: TableView | None, version: int | str
) -> TableView:
    """Return a snapshot of a table, by id or by tag."""
    if lake is None or view is None:
        raise Unavailable(
            "there are no snapshots without a lake: lake.enabled is false, or the lake is not "
            "installed"
        )
    snapshot_id = view.tags.get(version) if isinstance(version, str) else version
    if snapshot_id is None or all(snapshot_id != s.snapshot_id for s in view.snapshots):
        what = f"tagged {version!r}" if isinstance(version, str) else f"{version}"
        raise Unknown(f"{view.name} has no snapshot {what}, or it has expired; {_list(view)}")
    return lake.at(view.name, snapshot_id)


def snapshot_at(view: TableView, time_us: int) -> SnapshotInfo | None:
    """Return the last snapshot at a time, or None before the first one. `Unknown` if it has expired
    or its offsets are not known."""
    line = [snapshot for snapshot in view.snapshots if snapshot.is_current_line]
    then = [snapshot for snapshot in line if snapshot.committed_ms * US_PER_MS <= time_us]
    if then:
        if then[-1].offsets is None:
            raise Unknown(
                f"snapshot {then[-1].snapshot_id} of {view.name} has no log offsets, so the rows "
                "of that time are not known; use FOR SYSTEM_VERSION AS OF, or another time; "
                f"{_list(view)}"
            )
        return then[-1]
    if line and not line[0].is_first:
        raise Unknown(
            f"{view.name} at {_time(time_us)} is not available: snapshots before "
            f"{_time(line[0].committed_ms * US_PER_MS)} have expired; {_list(view)}"
        )
    return None


def keyed_snapshot(view: TableView, as_of: AsOf) -> SnapshotInfo:
    """Return the snapshot of a keyed table with exactly these offsets, or the last one at a
    time."""
    if as_of.time_us is not None:
        then = snapshot_at(view, as_of.time_us)
        if then is None:
            raise Unknown(f"{view.name} had no snapshot at {_time(as_of.time_us)}; {_list(view)}")
        return then
    assert as_of.offsets is not None
    wanted = {0: as_of.offsets} if isinstance(as_of.offsets, int) else dict(as_of.offsets)
    for snapshot in view.snapshots:
        offsets = {place.partition: offset for place, offset in (snapshot.offsets or {}).items()}
        if offsets == wanted:
            return snapshot
    raise Unknown(f"no snapshot of {view.name} ends at these offsets; {_list(view)}")


def rows_between(view: TableView, since: Offsets, time_us: int) -> str:
    """Return the SQL filter for rows at or above these offsets that were accepted by `time_us`."""
    ranges = []
    for (topic, partition), offset in sorted({**dict.fromkeys(view.offsets, 0), **since}.items()):
        terms = [f"_log_partition = {partition}", f"_offset >= {offset}"]
        if "topic" in view.schema.names:
            escaped = topic.replace("'", "''")
            terms.insert(0, f"topic = '{escaped}'")
        ranges.append(f"({' AND '.join(terms)})")
    accepted = f"{_accept_column(view.schema)} <= arrow_cast({time_us}, '{_TIME}')"
    return f"({' OR '.join(ranges)}) AND {accepted}" if ranges else accepted


def may_have_rows_between(file: TableFile, view: TableView, since: Offsets, time_us: int) -> bool:
    """Return whether a data file may have rows that pass `rows_between`."""
    first, last = file.bounds.get(_accept_column(view.schema)), file.bounds.get("_offset")
    is_late = first is not None and isinstance(first[0], int) and first[0] > time_us
    least = min((since.get(partition, 0) for partition in view.offsets), default=0)
    is_early = last is not None and isinstance(last[1], int) and last[1] < least
    return not is_late and not is_early


def piece_until(piece: Piece, time_us: int) -> Piece:
    """Return the rows of a piece that were accepted by then."""
    batches = []
    for batch in piece.batches:
        times = batch.column(_accept_column(batch.schema)).cast(pa.int64())
        batches.append(batch.filter(pc.less_equal(times, time_us)))
    kept = tuple(batch for batch in batches if batch.num_rows)
    return replace(
        piece,
        batches=kept,
        row_count=sum(batch.num_rows for batch in kept),
        location=None,
        from_offset=None,
    )


def _accept_column(schema: pa.Schema) -> str:
    """Return the column with the time a row was accepted."""
    return "ingest_time" if "ingest_time" in schema.names else "time"


def _time(time_us: int) -> str:
    seconds, us = divmod(time_us, 1_000_000)
    try:
        time = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{time_us} microseconds after 1970"
    return f"{time:%Y-%m-%d %H:%M:%S}.{us // 1000:03d} UTC"


def _list(view: TableView) -> str:
    if not view.snapshots:
        return "it has no snapshots yet"
    last = [
        f"{snapshot.snapshot_id} ({_time(snapshot.committed_ms * US_PER_MS)})"
        for snapshot in reversed(view.snapshots[-LISTED_MAX:])
    ]
    tags = sorted(tag for tag in view.tags if tag != "main")
    tagged = f"; tags: {', '.join(tags[:LISTED_MAX])}" if tags else ""
    return (
        f"it has {len(view.snapshots)} snapshots, the last ones {', '.join(last)}{tagged}. "
        "SELECT * FROM snapshots lists all"
    )
