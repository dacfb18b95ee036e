"""Committing files and offsets to a table: both in one step, or neither.

1. load    the table as the catalog has it now
2. fence   somebody else has taken the table over: stop
3. check   is this commit there already? does the table go on where these files begin?
4. swap    one transaction with the files, the offsets behind them, and our name for it; the catalog
           takes it only if nobody else has committed since 1
5. again   from 1, when somebody was quicker, or when nobody knows whether 4 was done

An unknown outcome is looked up, never assumed, and no file is removed because of it. The offsets
live in a property of the table, which maintenance keeps, and in the summary of each snapshot.
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
from frazil.model import Clock

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

logger = logging.getLogger(__name__)

NEXT_OFFSETS = "frazil.next-offsets"
APPENDER = "frazil.appender"
"""Who has taken the table over last. Only that one commits."""
COMMIT_ID = "frazil.commit-id"
OFFSETS = "frazil.offsets"
TOPIC_IDS = "frazil.topic-ids"
"""Which topics those offsets are of. One that was made anew has the name, and other records."""
TRIES = 20
WAIT_S = 0.1
WAIT_S_MAX = 5.0

COMMITS = Counter("frazil.lake.commits", "Commits to tables, by table and outcome.")

Found = TypeVar("Found")
Place = tuple[str, int]
"""A topic and a partition of it."""
Offsets = Mapping[Place, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """What is to be committed: files that hold exactly the offsets from `begins` up to `ends`."""

    files: Sequence[DataFile]
    begins: Offsets
    ends: Offsets
    appender: str
    """The name under which the table was taken over."""
    commit_id: str
    """Tells whether this very change is there, whatever became of the answer."""
    identities: Mapping[str, str] = field(default_factory=dict)
    """Topic -> which one of that name the files are made of, where that is known."""


def next_offsets(table: Table) -> dict[Place, int]:
    """The first offset of each partition that the table does not hold; 0 where it has none."""
    return offsets_of_text(table.properties.get(NEXT_OFFSETS, "{}"))


def offsets_of_text(text: str) -> dict[Place, int]:
    """Offsets as a table has them written down."""
    found = json.loads(text)
    return {
        (topic, int(partition)): offset
        for topic, partitions in found.items()
        for partition, offset in partitions.items()
    }


def check_topics(table: Table, identities: Mapping[str, str]) -> None:
    """`OutOfRange` when the table holds rows of another topic that had the same name."""
    known = json.loads(table.properties.get(TOPIC_IDS, "{}"))
    for topic, identity in identities.items():
        if known.get(topic, identity) != identity:
            raise OutOfRange(
                f"the topic {topic} was deleted and made anew: {_name(table)} holds rows of that "
                f"with id {known[topic]}, and this has {identity}. Offsets of both would be mixed "
                "up. Fill tables of another namespace from it (lake.namespace), or send to a topic "
                "of another name"
            )


def text_of(offsets: Offsets) -> str:
    """Offsets as they are written into a table."""
    nested: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        nested.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(nested)


def take_over(catalog: Catalog, name: str, appender: str, *, clock: Clock) -> None:
    """Fence off whoever has the table now: from here on only this appender commits to it."""

    def attempt(table: Table) -> None:
        if table.properties.get(APPENDER) != appender:
            with table.transaction() as transaction:
                transaction.set_properties({APPENDER: appender})

    repeat(catalog, name, attempt, clock)


def commit(catalog: Catalog, name: str, change: TableChange, *, clock: Clock) -> int:
    """Commit a change once. Returns the id of its snapshot.

    `Conflict` when the table does not go on where the change begins; `Fenced` when somebody else
    has taken over; `Overloaded` when a disk is full; `Unavailable` when the catalog does not let
    us; `Unresolved` when it could not be asked for too long: the change may be there, and whoever
    begins anew finds out from the table's offsets.
    """

    def attempt(table: Table) -> int:
        snapshot = find_commit(table, change.commit_id)
        if snapshot is not None:
            return snapshot.snapshot_id
        _check(table, change)
        return _swap(table, change)

    found = repeat(catalog, name, attempt, clock)
    COMMITS.add(table=name, outcome="committed")
    return found


def find_commit(table: Table, commit_id: str) -> Snapshot | None:
    """The snapshot that a commit made, if the table has it."""
    for snapshot in reversed(table.metadata.snapshots):
        if snapshot.summary is not None and snapshot.summary.get(COMMIT_ID) == commit_id:
            return snapshot
    return None


def check_owner(table: Table, appender: str) -> None:
    """`Fenced` when somebody else has taken the table over."""
    owner = table.properties.get(APPENDER)
    if owner != appender:
        COMMITS.add(table=_name(table), outcome="fenced")
        raise Fenced(f"{_name(table)} was taken over by appender {owner}; this is {appender}")


def _check(table: Table, change: TableChange) -> None:
    check_owner(table, change.appender)
    check_topics(table, change.identities)
    found = next_offsets(table)
    for place, begin in change.begins.items():
        if found.get(place, 0) != begin:
            COMMITS.add(table=_name(table), outcome="conflict")
            raise Conflict(
                f"{_name(table)} goes on at offset {found.get(place, 0)} of {place[0]}/{place[1]}, "
                f"and these files begin at {begin}; plan anew"
            )


def _swap(table: Table, change: TableChange) -> int:
    offsets = next_offsets(table) | dict(change.ends)
    summary = {COMMIT_ID: change.commit_id, OFFSETS: text_of(offsets)}
    properties = {NEXT_OFFSETS: text_of(offsets)}
    if change.identities:
        known = json.loads(table.properties.get(TOPIC_IDS, "{}"))
        properties[TOPIC_IDS] = json.dumps(known | dict(change.identities), sort_keys=True)
    with table.transaction() as transaction:
        transaction.set_properties(properties)
        with transaction.update_snapshot(snapshot_properties=summary).fast_append() as append:
            for file in change.files:
                append.append_data_file(file)
        snapshot_id = append.snapshot_id
    return snapshot_id


def repeat(catalog: Catalog, name: str, attempt: Callable[[Table], Found], clock: Clock) -> Found:
    """Load the table and try, until it is done or known to be impossible."""
    from pyiceberg.exceptions import CommitFailedException

    wait_s = WAIT_S
    for _ in range(TRIES):
        try:
            return attempt(catalog.load_table(name))
        except CommitFailedException as error:  # somebody was quicker; nothing was done
            outcome, reason = "raced", str(error)
        except rejection_errors() as error:
            raise Unavailable(f"the catalog refuses to commit to {name}: {error}") from error
        except unavailable_errors() as error:  # nobody knows
            if isinstance(error, OSError) and is_full(error):
                # Only files are written so, and all of them before the catalog is asked.
                raise Overloaded(
                    f"the disk is full: nothing was committed to {name}; free room on it"
                ) from error
            outcome, reason = "unknown", str(error)
        COMMITS.add(table=name, outcome=outcome)
        logger.warning("commit tried again", extra={"table": name, "reason": reason})
        clock.sleep(wait_s)
        wait_s = min(2 * wait_s, WAIT_S_MAX)
    raise Unresolved(f"the catalog of {name} did not answer {TRIES} times; the last time: {reason}")


def _name(table: Table) -> str:
    return ".".join(table.name())
