"""The rows of another time.

By version: exactly what a snapshot of the lake holds. By time: what a reader of both tiers would
have seen then,

    lake(S) + the rows at or above W(S) that were accepted by then

where S is the last snapshot at that time and W(S) are its offsets. Of the rows above W(S) some are
in the lake by now, in files that may hold others as well, and some in the hot tier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import Unavailable, Unknown

if TYPE_CHECKING:
    from frazil.hot import Piece
    from frazil.lake import LakeView, SnapshotInfo, TableFile, TableView

US_PER_MS = 1000
LISTED_MAX = 5
"""Snapshots that an error names."""

_TIME = 'Timestamp(Microsecond, Some("UTC"))'

Offsets = Mapping[tuple[str, int], int]


def snapshot_named(lake: LakeView | None, now: TableView | None, version: int | str) -> TableView:
    """A snapshot of a table, by its id or by a tag."""
    if lake is None or now is None:
        raise Unavailable(
            "there is no lake, so there are no snapshots: lake.enabled is false, or it is not "
            "installed"
        )
    found = now.tags.get(version) if isinstance(version, str) else version
    if found is None or all(found != snapshot.snapshot_id for snapshot in now.snapshots):
        what = f"a snapshot called {version!r}" if isinstance(version, str) else f"{version}"
        raise Unknown(f"{now.name} has no snapshot {what}, or not any more; {_list(now)}")
    return lake.at(now.name, found)


def snapshot_then(now: TableView, moment_us: int) -> SnapshotInfo | None:
    """The last snapshot at a time; None when there was none yet. `Unknown` when it is gone."""
    line = [snapshot for snapshot in now.snapshots if snapshot.is_current_line]
    then = [snapshot for snapshot in line if snapshot.committed_ms * US_PER_MS <= moment_us]
    if then:
        if then[-1].offsets is None:
            raise Unknown(
                f"snapshot {then[-1].snapshot_id} of {now.name} is still there, but not what it "
                "had of the log: ask for it with FOR SYSTEM_VERSION AS OF, or for another time; "
                f"{_list(now)}"
            )
        return then[-1]
    if line and not line[0].is_first:
        raise Unknown(
            f"{now.name} at {_time(moment_us)} is gone: snapshots before "
            f"{_time(line[0].committed_ms * US_PER_MS)} have expired; {_list(now)}"
        )
    return None


def rows_between(now: TableView, since: Offsets, moment_us: int) -> str:
    """What a row of the lake must fulfil to have come after these offsets, and by that time."""
    places = []
    for (topic, partition), offset in sorted({**dict.fromkeys(now.offsets, 0), **since}.items()):
        terms = [f"_log_partition = {partition}", f"_offset >= {offset}"]
        if "topic" in now.schema.names:
            escaped = topic.replace("'", "''")
            terms.insert(0, f"topic = '{escaped}'")
        places.append(f"({' AND '.join(terms)})")
    by_then = f"{_accepted(now.schema)} <= arrow_cast({moment_us}, '{_TIME}')"
    return f"({' OR '.join(places)}) AND {by_then}" if places else by_then


def may_have_come_between(file: TableFile, now: TableView, since: Offsets, moment_us: int) -> bool:
    """May a file have such a row?"""
    first, last = file.bounds.get(_accepted(now.schema)), file.bounds.get("_offset")
    is_late = first is not None and isinstance(first[0], int) and first[0] > moment_us
    least = min((since.get(place, 0) for place in now.offsets), default=0)
    is_early = last is not None and isinstance(last[1], int) and last[1] < least
    return not is_late and not is_early


def piece_until(piece: Piece, moment_us: int) -> Piece:
    """The rows of a piece that were accepted by then."""
    batches = []
    for batch in piece.batches:
        times = batch.column(_accepted(batch.schema)).cast(pa.int64())
        batches.append(batch.filter(pc.less_equal(times, moment_us)))
    kept = tuple(batch for batch in batches if batch.num_rows)
    return replace(piece, batches=kept, row_count=sum(batch.num_rows for batch in kept))


def _accepted(schema: pa.Schema) -> str:
    """The column that says when a row was accepted."""
    return "ingest_time" if "ingest_time" in schema.names else "time"


def _time(moment_us: int) -> str:
    seconds, us = divmod(moment_us, 1_000_000)
    try:
        shown = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{moment_us} microseconds after 1970"
    return f"{shown:%Y-%m-%d %H:%M:%S}.{us // 1000:03d} UTC"


def _list(now: TableView) -> str:
    """What there is."""
    if not now.snapshots:
        return "it has none yet"
    shown = [
        f"{snapshot.snapshot_id} ({_time(snapshot.committed_ms * US_PER_MS)})"
        for snapshot in reversed(now.snapshots[-LISTED_MAX:])
    ]
    tags = sorted(tag for tag in now.tags if tag != "main")
    named = f"; names: {', '.join(tags[:LISTED_MAX])}" if tags else ""
    return (
        f"it has {len(now.snapshots)}, the last ones {', '.join(shown)}{named}. SELECT * FROM "
        "snapshots lists all"
    )
