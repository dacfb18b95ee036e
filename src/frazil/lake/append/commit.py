"""Commits files and next offsets to a table, atomically.

1. load    the table from the catalog
2. fence   stop if another appender has taken the table over
3. check   is this commit id there already? is the table's next offset where these files begin?
4. swap    one transaction with the files, the next offsets and the commit id; the catalog accepts
           it only if nothing was committed since 1
5. retry   from 1, after a conflict or an unknown outcome

An unknown outcome is looked up, never assumed, and no file is deleted because of it. The offsets
are in a table property, which maintenance preserves, and in the summary of each snapshot.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from frazil.disk import is_full
from frazil.errors import Conflict, Fenced, OutOfRange, Overloaded, Unavailable, Unresolved
from frazil.lake.catalog.catalog import rejection_errors, unavailable_errors
from frazil.metrics import Counter
from frazil.model import Clock, TopicPartition

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from frazil.lake.files.writer import WrittenFile

logger = logging.getLogger(__name__)

NEXT_OFFSETS = "frazil.next-offsets"
APPENDER = "frazil.appender"
"""The appender that took the table over last. Only that one commits."""
COMMIT_ID = "frazil.commit-id"
OFFSETS = "frazil.offsets"
TOPIC_IDS = "frazil.topic-ids"
"""Ids of the topics of those offsets. A topic deleted and created again has another id."""
REMOVED_ROWS = "frazil.removed-rows"
"""In the summary of a snapshot: rows that it removed. Older snapshots may still have them."""
REMOVED_OFFSETS = "frazil.removed-offsets"
"""The offset after the last removed row, by partition. Log and hot tier drop what is below."""
ATTEMPTS_MAX = 20
RETRY_S = 0.1
RETRY_S_MAX = 5.0

COMMITS = Counter("frazil.lake.commits", "Commits to tables, by table and outcome.")

T = TypeVar("T")
Offsets = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """A change to commit: files with all rows of the offsets from `begins` up to `ends`."""

    files: Sequence[DataFile]
    begins: Offsets
    ends: Offsets
    appender: str
    """The name that took the table over."""
    commit_id: str
    """Finds this change in the table after an unknown outcome."""
    identities: Mapping[str, str] = field(default_factory=dict)
    """Topic -> topic id, if known."""


def next_offsets(table: Table) -> dict[TopicPartition, int]:
    """Return the first offset of each partition that is not in the table; missing means 0."""
    return offsets_of_text(table.properties.get(NEXT_OFFSETS, "{}"))


def removed_offsets(table: Table) -> dict[TopicPartition, int]:
    """Return the offset after the last row that was ever removed, by partition."""
    return offsets_of_text(table.properties.get(REMOVED_OFFSETS, "{}"))


def offsets_of_text(text: str) -> dict[TopicPartition, int]:
    """Parse offsets from a table property."""
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in json.loads(text).items()
        for partition, offset in partitions.items()
    }


def topic_ids(table: Table) -> dict[str, str]:
    """Return topic -> id of the topics whose rows the table has; missing if unknown."""
    ids: dict[str, str] = json.loads(table.properties.get(TOPIC_IDS, "{}"))
    return ids


def check_topics(table: Table, identities: Mapping[str, str]) -> None:
    """Raise `OutOfRange` if the table has rows of another topic with the same name."""
    known = topic_ids(table)
    for topic, identity in identities.items():
        if known.get(topic, identity) != identity:
            raise OutOfRange(
                f"topic {topic} was deleted and created again: {_name(table)} has rows of topic id "
                f"{known[topic]}, and the topic's id is {identity}. Their offsets would be mixed. "
                "Fill tables in another namespace (lake.namespace), or send to a topic with "
                "another name"
            )


def text_of(offsets: Offsets) -> str:
    """Format offsets for a table property."""
    nested: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        nested.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(nested)


def take_over(catalog: Catalog, name: str, appender: str, *, clock: Clock) -> None:
    """Make this appender the only one that commits to the table; fences all others."""

    def attempt(table: Table) -> None:
        if table.properties.get(APPENDER) != appender:
            with table.transaction() as transaction:
                transaction.set_properties({APPENDER: appender})

    repeat(catalog, name, attempt, clock)


def commit(catalog: Catalog, name: str, change: TableChange, *, clock: Clock) -> int:
    """Commit a change exactly once. Returns its snapshot id.

    Raises `Conflict` if the table's next offset is not where the change begins, `Fenced` if another
    appender has taken over, `Overloaded` if a disk is full, `Unavailable` if the catalog rejects
    the request, and `Unresolved` if the catalog did not respond: the change may be committed, and
    the next round learns it from the table's offsets.
    """

    def attempt(table: Table) -> int:
        snapshot = find_commit(table, change.commit_id)
        if snapshot is not None:
            return snapshot.snapshot_id
        _check(table, change)
        return _swap(table, change)

    snapshot_id = repeat(catalog, name, attempt, clock)
    COMMITS.add(table=name, outcome="committed")
    return snapshot_id


def find_commit(table: Table, commit_id: str) -> Snapshot | None:
    """Return the snapshot with this commit id, or None."""
    for snapshot in reversed(table.metadata.snapshots):
        if snapshot.summary is not None and snapshot.summary.get(COMMIT_ID) == commit_id:
            return snapshot
    return None


def check_owner(table: Table, appender: str) -> None:
    """Raise `Fenced` if another appender has taken the table over."""
    owner = table.properties.get(APPENDER)
    if owner != appender:
        COMMITS.add(table=_name(table), outcome="fenced")
        raise Fenced(f"{_name(table)} was taken over by appender {owner}; this one is {appender}")


def _check(table: Table, change: TableChange) -> None:
    check_owner(table, change.appender)
    check_topics(table, change.identities)
    offsets = next_offsets(table)
    for topic_partition, begin in change.begins.items():
        expected = offsets.get(topic_partition, 0)
        if expected != begin:
            COMMITS.add(table=_name(table), outcome="conflict")
            raise Conflict(
                f"the next offset of {_name(table)} is {expected} of {topic_partition}, but "
                f"these files begin at {begin}; plan again"
            )


def _swap(table: Table, change: TableChange) -> int:
    from pyiceberg.table.snapshots import Operation

    from frazil.lake.catalog.own_files import OwnAppend

    offsets = next_offsets(table) | dict(change.ends)
    summary = {COMMIT_ID: change.commit_id, OFFSETS: text_of(offsets)}
    properties = {NEXT_OFFSETS: text_of(offsets)}
    if change.identities:
        known = topic_ids(table)
        properties[TOPIC_IDS] = json.dumps(known | dict(change.identities), sort_keys=True)
    with table.transaction() as transaction:
        transaction.set_properties(properties)
        with OwnAppend(
            operation=Operation.APPEND,
            transaction=transaction,
            io=table.io,
            snapshot_properties=summary,
        ) as append:
            for file in change.files:
                append.append_data_file(file)
        snapshot_id: int = append.snapshot_id
    return snapshot_id


def repeat(catalog: Catalog, name: str, attempt: Callable[[Table], T], clock: Clock) -> T:
    """Load the table and run `attempt`; retry after conflicts and unknown outcomes."""
    from pyiceberg.exceptions import CommitFailedException

    wait_s = RETRY_S
    for _ in range(ATTEMPTS_MAX):
        try:
            return attempt(catalog.load_table(name))
        except CommitFailedException as error:  # another commit came first; nothing was changed
            outcome, reason = "raced", str(error)
        except rejection_errors() as error:
            raise Unavailable(f"the catalog rejected the commit to {name}: {error}") from error
        except unavailable_errors() as error:
            if isinstance(error, OSError) and is_full(error):
                # Not unknown: all files are written before the request to the catalog.
                raise Overloaded(
                    f"the disk is full: nothing was committed to {name}; free disk space"
                ) from error
            outcome, reason = "unknown", str(error)
        COMMITS.add(table=name, outcome=outcome)
        logger.warning("lake commit retried", extra={"table": name, "reason": reason})
        clock.sleep(wait_s)
        wait_s = min(2 * wait_s, RETRY_S_MAX)
    raise Unresolved(
        f"the outcome of a commit to {name} is unknown after {ATTEMPTS_MAX} attempts: {reason}"
    )


def _name(table: Table) -> str:
    return ".".join(table.name())


def data_file_of(file: WrittenFile, table: Table) -> DataFile:
    """Return the Iceberg metadata of a written file."""
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    entry = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{table.location()}/{file.path}",
        file_format=FileFormat.PARQUET,
        partition=Record() if file.day is None else Record(file.day),
        record_count=file.row_count,
        file_size_in_bytes=file.size_bytes,
        column_sizes=dict(file.metrics.column_sizes),
        value_counts=dict(file.metrics.value_counts),
        null_value_counts=dict(file.metrics.null_value_counts),
        nan_value_counts=dict(file.metrics.nan_value_counts),
        lower_bounds=dict(file.metrics.lower_bounds),
        upper_bounds=dict(file.metrics.upper_bounds),
        split_offsets=list(file.metrics.split_offsets),
        sort_order_id=table.sort_order().order_id,
        equality_ids=None,
        key_metadata=None,
    )
    entry.spec_id = table.metadata.default_spec_id
    return entry
