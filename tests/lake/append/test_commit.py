"""Files and offsets are committed together, once, despite concurrent commits and lost responses."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import _parquet_files_to_data_files
from pyiceberg.types import LongType, NestedField
from sqlalchemy.exc import OperationalError

from frazil.errors import Conflict, Fenced, Unresolved
from frazil.lake.append import commit as commits
from frazil.lake.append.commit import TableChange, commit, next_offsets, take_over
from frazil.model import SystemClock, TopicPartition

NAME = "frazil.logs"
LOGS = TopicPartition("otlp_logs", 0)
SCHEMA = Schema(NestedField(1, "_offset", LongType(), required=True))
ARROW = pa.schema([pa.field("_offset", pa.int64(), False, {"PARQUET:field_id": "1"})])


class NoWait(SystemClock):
    def sleep(self, seconds: float) -> None:
        """Do not wait."""


CLOCK = NoWait()


def open_catalog(folder: Path) -> SqlCatalog:
    return SqlCatalog(
        "frazil",
        uri=f"sqlite:///{folder}/catalog.db",
        warehouse=f"file://{folder}/warehouse",
        **{"py-io-impl": "frazil.lake.catalog.file_io.DurableFileIO"},
    )


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    made = open_catalog(tmp_path)
    made.create_namespace("frazil")
    made.create_table(NAME, SCHEMA, properties={"commit.retry.num-retries": "0"})
    take_over(made, NAME, "a", clock=CLOCK)
    yield made
    made.close()


def file_of(catalog: SqlCatalog, folder: Path, begin: int, end: int) -> DataFile:
    """A data file with one row per offset."""
    path = folder / f"{begin}-{end}-{threading.get_ident()}.parquet"
    rows = pa.table({"_offset": pa.array(range(begin, end), pa.int64())}, schema=ARROW)
    pq.write_table(rows, path)
    table = catalog.load_table(NAME)
    made = _parquet_files_to_data_files(table.metadata, [f"file://{path}"], table.io)
    return next(iter(made))


def change(
    catalog: SqlCatalog, folder: Path, begin: int, end: int, appender: str = "a"
) -> TableChange:
    return TableChange(
        files=[file_of(catalog, folder, begin, end)],
        begins={LOGS: begin},
        ends={LOGS: end},
        appender=appender,
        commit_id=uuid.uuid4().hex,
    )


def rows_of(catalog: SqlCatalog) -> list[int]:
    return sorted(catalog.load_table(NAME).scan().to_arrow()["_offset"].to_pylist())


def test_files_and_offsets_are_committed_together(catalog: SqlCatalog, tmp_path: Path) -> None:
    """The next change continues there; the snapshot summary has the offsets, too."""
    assert next_offsets(catalog.load_table(NAME)) == {}
    commit(catalog, NAME, change(catalog, tmp_path, 0, 5), clock=CLOCK)
    last = commit(catalog, NAME, change(catalog, tmp_path, 5, 9), clock=CLOCK)
    table = catalog.load_table(NAME)
    assert next_offsets(table) == {LOGS: 9}
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.snapshot_id == last
    assert snapshot.summary is not None
    assert snapshot.summary["frazil.offsets"] == '{"otlp_logs": {"0": 9}}'
    assert rows_of(catalog) == list(range(9))


@pytest.mark.parametrize("begin", [0, 4, 6])
def test_repeated_and_skipped_offsets_are_conflicts(
    catalog: SqlCatalog, tmp_path: Path, begin: int
) -> None:
    commit(catalog, NAME, change(catalog, tmp_path, 0, 5), clock=CLOCK)
    with pytest.raises(Conflict, match=r"next offset of .* is 5"):
        commit(catalog, NAME, change(catalog, tmp_path, begin, 9), clock=CLOCK)
    assert rows_of(catalog) == list(range(5))


def test_committing_a_change_twice_applies_it_once(catalog: SqlCatalog, tmp_path: Path) -> None:
    """Even if others have committed in between."""
    one = change(catalog, tmp_path, 0, 5)
    first = commit(catalog, NAME, one, clock=CLOCK)
    commit(catalog, NAME, change(catalog, tmp_path, 5, 7), clock=CLOCK)
    assert commit(catalog, NAME, one, clock=CLOCK) == first
    assert rows_of(catalog) == list(range(7))


def test_a_lost_response_is_looked_up(
    catalog: SqlCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog committed, but the response was lost."""
    commit_table = SqlCatalog.commit_table
    lost: list[Any] = []

    def losing(self: SqlCatalog, *given: Any) -> Any:
        answer = commit_table(self, *given)
        if not lost:
            lost.append(answer)
            raise OperationalError("connection lost", None, Exception())
        return answer

    one = change(catalog, tmp_path, 0, 5)
    monkeypatch.setattr(SqlCatalog, "commit_table", losing)
    commit(catalog, NAME, one, clock=CLOCK)
    assert len(lost) == 1
    assert rows_of(catalog) == list(range(5))
    assert len(catalog.load_table(NAME).metadata.snapshots) == 1


def test_a_catalog_without_a_response_is_unresolved(
    catalog: SqlCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def failing(self: SqlCatalog, *_: Any) -> Any:
        raise OperationalError("database is locked", None, Exception())

    one = change(catalog, tmp_path, 0, 5)
    with monkeypatch.context() as patch:
        patch.setattr(SqlCatalog, "commit_table", failing)
        with pytest.raises(Unresolved, match="database is locked"):
            commit(catalog, NAME, one, clock=CLOCK)
    assert rows_of(catalog) == []
    commit(catalog, NAME, one, clock=CLOCK)
    assert rows_of(catalog) == list(range(5)), "its files are still there"


def test_a_fenced_appender_commits_nothing(catalog: SqlCatalog, tmp_path: Path) -> None:
    """Not even a change that would fit."""
    take_over(catalog, NAME, "b", clock=CLOCK)
    with pytest.raises(Fenced, match="taken over by appender b"):
        commit(catalog, NAME, change(catalog, tmp_path, 0, 5, "a"), clock=CLOCK)
    commit(catalog, NAME, change(catalog, tmp_path, 0, 5, "b"), clock=CLOCK)


def test_one_of_many_concurrent_commits_wins(catalog: SqlCatalog, tmp_path: Path) -> None:
    """Eight threads commit the same offsets as the same appender; the others get an error."""
    changes = [change(catalog, tmp_path, 0, 5) for _ in range(8)]
    outcomes: list[str] = []

    def run(one: TableChange) -> None:
        mine = open_catalog(tmp_path)
        try:
            commit(mine, NAME, one, clock=CLOCK)
            outcomes.append("committed")
        except (Conflict, Unresolved) as error:
            outcomes.append(type(error).__name__)
        mine.close()

    threads = [threading.Thread(target=run, args=(one,)) for one in changes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("committed") == 1
    assert rows_of(catalog) == list(range(5))


def test_expired_snapshots_do_not_lose_the_offsets(catalog: SqlCatalog, tmp_path: Path) -> None:
    for begin in range(0, 20, 5):
        commit(catalog, NAME, change(catalog, tmp_path, begin, begin + 5), clock=CLOCK)
    table = catalog.load_table(NAME)
    old = [snapshot.snapshot_id for snapshot in table.metadata.snapshots[:-1]]
    table.maintenance.expire_snapshots().by_ids(old).commit()
    assert next_offsets(catalog.load_table(NAME)) == {LOGS: 20}
    commit(catalog, NAME, change(catalog, tmp_path, 20, 21), clock=CLOCK)
    assert commits.find_commit(catalog.load_table(NAME), "nobody") is None
