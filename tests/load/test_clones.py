"""Clones, clustering and bloom filters of loaded tables, with real Parquet files and catalogs."""

from __future__ import annotations

import os
import random
import re
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import CreateTableTransaction, Table
from pyiceberg.transforms import BucketTransform

from frazil.disk import RealDisk
from frazil.errors import Conflict, Malformed, Unknown
from frazil.lake import CloneSource, clone_table, cluster_by, set_bloom
from frazil.lake.append.commit import data_file_of
from frazil.lake.files.parquet_schema import file_layout_of
from frazil.lake.files.writer import TableWriter
from frazil.lake.loaded.clone_table import clone_warnings
from frazil.lake.maintain.loaded_compaction import try_merge_loaded
from frazil.lake.maintain.maintenance import Maintenance
from frazil.lake.maintain.orphan_files import remove_orphans
from frazil.lake.tables.tables import ensure_table
from frazil.model import SystemClock
from frazil.model.arrow import TABLES
from tests.load.loading import CONFIG, Loading, run_inline, sql_over

CLOCK = SystemClock()
NDJSON = "FILE_FORMAT=(TYPE=NDJSON)"


class Later(SystemClock):
    """The wall clock, a week ahead."""

    def wall_ms(self) -> int:
        return super().wall_ms() + 7 * 86_400_000


def clone(loading: Loading, name: str, source: str, **which: Any) -> Any:
    return clone_table(
        loading.catalog,
        CONFIG,
        name,
        CloneSource(name=source, **which),
        unique=f"{random.getrandbits(128):032x}",
        clock=CLOCK,
    )


def load(loading: Loading, name: str) -> Table:
    return loading.catalog.load_table((CONFIG.namespace, name))


def files_of(table: Table) -> list[str]:
    return [task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()]


def values(loading: Loading, name: str) -> list[int]:
    """Read a table with PyIceberg and its files with DuckDB."""
    found = sorted(row["a"] for row in loading.rows(name))
    with duckdb.connect() as database:
        text = "SELECT a FROM read_parquet(?) ORDER BY a"
        rows = database.execute(text, [files_of(load(loading, name))]).fetchall()
    assert [row[0] for row in rows] == found
    return found


def maintenance(loading: Loading) -> Maintenance:
    return Maintenance(
        lambda: loading.catalog, CONFIG, run_inline, clock=Later(), rand=random.SystemRandom()
    )


def test_a_clone_and_its_source_live_apart(tmp_path: Path) -> None:
    """Expiry, compaction, orphan removal and drop of one never touch the other; both are loaded
    further, and each file once."""
    loading = Loading(tmp_path)
    copy = f"COPY INTO {{}} FROM @s {NDJSON}"
    loading.put("1.ndjson", b'{"a":1}\n')
    first = loading.copy(copy.format("t")).snapshot_id
    loading.put("2.ndjson", b'{"a":2}\n')
    loading.copy(copy.format("t"))
    assert clone(loading, "then", "t", version=first).row_count == 1
    assert clone(loading, "now", "t").row_count == 2
    source, made = files_of(load(loading, "t")), files_of(load(loading, "now"))
    inodes = [{Path(path).stat().st_ino for path in paths} for paths in (source, made)]
    assert inodes[0] == inodes[1]
    # What the snapshot has is known; what came later is loaded.
    assert loading.copy(copy.format("then")).row_count == 1
    assert loading.copy(copy.format("now")).known_count == 2

    loading.put("3.ndjson", b'{"a":3}\n')
    loading.copy(copy.format("t"))
    for _ in range(3):
        done = {each.table: each for each in maintenance(loading).all()}
        assert not any(each.trouble for each in done.values())
    assert len(files_of(load(loading, "t"))) == 1
    for name in ("t", "then", "now"):
        remove_orphans(
            loading.catalog, f"{CONFIG.namespace}.{name}", run_inline, now_ms=2**50, age_ms=0
        )
    assert values(loading, "t") == [1, 2, 3]
    assert values(loading, "then") == values(loading, "now") == [1, 2]
    with sql_over(loading) as sql:
        assert sql("SELECT t.a FROM t LEFT JOIN now ON now.a = t.a WHERE now.a IS NULL") == [(3,)]
    loading.catalog.purge_table((CONFIG.namespace, "t"))
    RealDisk(tmp_path).remove_tree(str(Path(source[0]).parents[1].relative_to(tmp_path)))
    assert values(loading, "now") == [1, 2]
    loading.copy(copy.format("now"))
    clone(loading, "again", "now")
    loading.catalog.purge_table((CONFIG.namespace, "now"))
    assert values(loading, "again") == [1, 2, 3]
    with pytest.raises(Conflict, match="exists"):
        clone(loading, "again", "then")
    with pytest.raises(Unknown, match="no snapshot or tag 7"):
        clone(loading, "more", "then", version=7)
    with pytest.raises(Unknown, match="no table gone"):
        clone(loading, "more", "gone")


def test_a_snapshot_that_expires_meanwhile(tmp_path: Path) -> None:
    """A file that is gone when it gets its second name is an error, and nothing is left."""
    loading = Loading(tmp_path)
    for index in range(2):
        loading.put(f"{index}.ndjson", f'{{"a":{index}}}\n'.encode())
        loading.copy(f"COPY INTO t FROM @s {NDJSON}")
    Path(files_of(load(loading, "t"))[1]).unlink()
    with pytest.raises(Conflict, match="expired meanwhile"):
        clone(loading, "b", "t")
    assert not loading.catalog.table_exists((CONFIG.namespace, "b"))
    assert not list(loading.data.rglob("b/data/**/*.parquet"))


def test_loads_while_files_are_merged(tmp_path: Path) -> None:
    """Rows that are committed while maintenance merges files are kept; if a merged file is removed
    by others meanwhile, they win."""
    loading = Loading(tmp_path)
    count = 0

    def copy() -> None:
        nonlocal count
        count += 1
        loading.put(f"{count}.ndjson", f'{{"a":{count}}}\n'.encode())
        loading.copy(f"COPY INTO t FROM @s {NDJSON}")

    def slowly(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        if function is try_merge_loaded and items and count < 4:
            copy()
            if count == 3:  # the file with this row, which is about to be merged
                load(loading, "t").delete("a = 1")
        return run_inline(function, items)

    copy()
    copy()
    work = Maintenance(
        lambda: loading.catalog, CONFIG, slowly, clock=CLOCK, rand=random.SystemRandom()
    )
    done = work.all()[0]
    assert not done.trouble and done.files_joined >= 3
    assert values(loading, "t") == [2, 3, 4]
    assert len(files_of(load(loading, "t"))) == 1


def test_a_frozen_copy_of_logs(tmp_path: Path) -> None:
    """A table filled from the log is cloned with all its columns and ids; the copy is no table of
    the log any more."""
    loading = Loading(tmp_path)
    table = ensure_table(loading.catalog, CONFIG, "logs")
    blank: dict[str, Any] = {"string": "x", "int32": 0, "int64": 7}
    row = {
        field.name: [("k", "v")]
        if pa.types.is_map(field.type)
        else blank.get(str(field.type), 1_790_000_000_000_000)
        for field in TABLES["logs"]
    }
    batch = pa.RecordBatch.from_pylist([row], TABLES["logs"])
    disk = RealDisk(table.location().removeprefix("file://"))
    writer = TableWriter(disk, file_layout_of("logs"), "test")
    writer.write([batch], batch.nbytes)
    with (
        table.transaction() as transaction,
        transaction.update_snapshot().fast_append() as append,
    ):
        for file in writer.sync():
            append.append_data_file(data_file_of(file, table))
    clone(loading, "frozen", "logs")
    made = load(loading, "frozen")
    assert made.schema() == table.schema() and made.spec() == table.spec()
    assert made.metadata.last_column_id == load(loading, "logs").metadata.last_column_id
    assert {key for key in made.properties if key.startswith("frazil.")} == {
        "frazil.loaded",
        "frazil.clone-of",
    }
    with sql_over(loading) as sql:
        found = sql("SELECT attributes['k'], time_unix_nano FROM frozen WHERE time > '2026-01-01'")
        assert found == [("v", 7)]
    with pytest.raises(Malformed, match="filled from the log"):
        set_bloom_or_order(loading, "logs")
    set_bloom_or_order(loading, "frozen")
    clone(loading, "more", "frozen")
    (of_frozen, of_more) = clone_warnings(loading.catalog, CONFIG, "logs")
    assert "frozen" in of_frozen and "more" in of_more


def set_bloom_or_order(loading: Loading, name: str) -> None:
    table = load(loading, name)
    if name == "logs":
        with table.transaction() as transaction:
            transaction.set_properties({"frazil.appender": "x"})
    cluster_by(loading.catalog, CONFIG, name, ["service_name"], clock=CLOCK)
    set_bloom(loading.catalog, CONFIG, name, ["trace_id"], clock=CLOCK)


@pytest.mark.parametrize("step", ["link", "commit", "after"])
def test_killed_between_steps(tmp_path: Path, step: str) -> None:
    """A kill leaves the source as it was, and no table, or all of it; a second attempt works, and
    maintenance removes what is left."""
    loading = Loading(tmp_path)
    for index in range(3):
        loading.put(f"{index}.ndjson", f'{{"a":{index}}}\n'.encode())
        loading.copy(f"COPY INTO t FROM @s {NDJSON}")
    loading.catalog.close()
    pid = os.fork()
    if pid == 0:
        _die_at(step)
        clone(Loading(tmp_path), "b", "t")
        os._exit(1)
    _, status = os.waitpid(pid, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    loading = Loading(tmp_path)
    assert values(loading, "t") == [0, 1, 2]
    if step == "after":
        assert values(loading, "b") == [0, 1, 2]
        return
    clone(loading, "b", "t")
    before = len(list(loading.data.rglob("b/data/**/*.parquet")))
    remove_orphans(loading.catalog, f"{CONFIG.namespace}.b", run_inline, now_ms=2**50, age_ms=0)
    assert len(list(loading.data.rglob("b/data/**/*.parquet"))) == 3 < before
    assert values(loading, "b") == values(loading, "t") == [0, 1, 2]


def _die_at(step: str) -> None:
    """Have this process killed at a step. It is a child of the test."""

    def kill(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if step == "link":
        real_link = RealDisk.link

        def link(self: RealDisk, source: Path, path: str) -> bool:
            kill() if path.endswith("1.parquet") else None
            return real_link(self, source, path)

        RealDisk.link = link  # type: ignore[method-assign]
    elif step == "commit":
        CreateTableTransaction.commit_transaction = kill  # type: ignore[assignment,method-assign]
    else:
        real = CreateTableTransaction.commit_transaction

        def commit(self: CreateTableTransaction) -> Any:
            real(self)
            kill()

        CreateTableTransaction.commit_transaction = commit  # type: ignore[method-assign]


def test_clustered_files_are_sorted(tmp_path: Path) -> None:
    """COPY writes sorted files; maintenance sorts older ones, merges by partition, and keeps every
    row; bloom filters are written and used; NONE ends both."""
    loading = Loading(tmp_path)
    rng = random.Random(7)
    rows: list[tuple[int, str]] = []

    def copy(count: int) -> None:
        part = [(rng.randrange(1000), rng.choice("xy")) for _ in range(count)]
        rows.extend(part)
        lines = [f'{{"a":{a},"p":"{p}","id":"i{a}"}}' for a, p in part] + ['{"p":"x"}']
        loading.put(f"{len(rows)}.ndjson", "\n".join(lines).encode() + b"\n")
        loading.copy(
            f"COPY INTO t FROM @s {NDJSON} {'' if len(rows) > count else 'PARTITION BY (p)'}"
        )

    copy(50)
    cluster_by(loading.catalog, CONFIG, "t", ["a"], clock=CLOCK)
    set_bloom(loading.catalog, CONFIG, "t", ["id"], clock=CLOCK)
    copy(60)
    copy(70)
    flags = [_sorted(path) for path in files_of(load(loading, "t"))]
    assert flags.count(True) >= 4
    done = maintenance(loading).all()
    assert not done[0].trouble and done[0].files_joined == 6
    assert maintenance(loading).all()[0].files_joined == 0
    files = files_of(load(loading, "t"))
    assert len(files) == 2 and all(map(_sorted, files))
    found = sorted((r["a"], r["p"]) for r in loading.rows("t") if r["a"] is not None)
    assert found == sorted(rows)
    assert len(loading.rows("t")) == len(rows) + 3
    with sql_over(loading) as sql:
        # Between the least and the greatest value, and not there: only bloom filters tell.
        plans = sql("EXPLAIN ANALYZE SELECT a FROM t WHERE id = 'i5000'")
        pruned = re.findall(r"row_groups_pruned_bloom_filter=(\d+) total → (\d+) m", str(plans))
        assert pruned and all(int(all_) > 0 == int(matched) for all_, matched in pruned), plans
    cluster_by(loading.catalog, CONFIG, "t", [], clock=CLOCK)
    set_bloom(loading.catalog, CONFIG, "t", [], clock=CLOCK)
    copy(5)
    assert maintenance(loading).all()[0].files_joined
    assert len(loading.rows("t")) == len(rows) + 4
    # An order of another program that is not by plain columns: merged, not sorted, and it ends.
    with load(loading, "t").update_sort_order() as update:
        update.asc("a", BucketTransform(4))
    copy(5)
    assert maintenance(loading).all()[0].files_joined
    assert not maintenance(loading).all()[0].files_joined
    assert len(loading.rows("t")) == len(rows) + 5
    with pytest.raises(Malformed, match="no column b"):
        cluster_by(loading.catalog, CONFIG, "t", ["b"], clock=CLOCK)
    with pytest.raises(Unknown):
        cluster_by(loading.catalog, CONFIG, "gone", ["b"], clock=CLOCK)


def _sorted(path: str) -> bool:
    values = [a for a in pq.read_table(path)["a"].to_pylist() if a is not None]
    return values == sorted(values)
