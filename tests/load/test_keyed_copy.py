"""COPY INTO a keyed table: each row of each file once and in order, whatever is killed when."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frazil.errors import Conflict, Corrupt, Malformed, Overloaded, Rejected, Unknown, Unresolved
from frazil.model import Rand
from frazil.settings import TablesConfig
from frazil.tables import TableFeed, new_definition
from tests.load.keyed_loading import COLUMNS, Countdown, KeyedLoading, Killed
from tests.load.loading import Loading

NDJSON = "FILE_FORMAT=(TYPE=NDJSON)"


def ndjson(*rows: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def row(number: int, name: str | None = None, amount: int | None = None) -> dict[str, Any]:
    return {"id": number, "name": name, "amount": amount}


@pytest.fixture
def there(tmp_path: Path) -> Any:
    opened = KeyedLoading(Loading(tmp_path), tmp_path / "keyed", partitions=3)
    yield opened
    opened.close()


def test_files_are_loaded_once_and_in_order(there: KeyedLoading) -> None:
    put = there.files.put
    put("a.ndjson", ndjson(row(1, "a"), row(2, "a"), row(1, "b", 7)))
    put("b.ndjson", ndjson({"id": 2, "name": "c"}, {"id": 3, "name": "c"}))
    first = there.copy()
    assert (first.row_count, first.error_count, first.snapshot_id) == (5, 0, None)
    # A file without a column puts NULL there, as COPY and upserts do everywhere.
    assert there.rows() == [row(1, "b", 7), row(2, "c"), row(3, "c")]
    there.upsert(pa.table({"id": [1], "name": ["later"]}))
    again = there.copy()
    assert (again.row_count, again.known_count) == (0, 2)
    assert there.rows()[0] == row(1, "later")
    put("a.ndjson", ndjson(row(9)))
    assert [uri.rpartition("/")[2] for uri in there.copy().replaced] == ["a.ndjson"]
    there.copy("FILES=('b.ndjson') FORCE=true PURGE=true")
    assert there.rows() == [row(1, "later"), row(2, "c"), row(3, "c"), row(9)]
    assert not (there.files.files / "b.ndjson").exists()
    history = there.loads.ledger("t").to_pylist()
    assert [(each["uri"].rpartition("/")[2], each["rows"]) for each in history] == [
        ("a.ndjson", 3),
        ("b.ndjson", 2),
        ("a.ndjson", 1),
        ("b.ndjson", 2),
    ]
    assert len({each["commit_id"] for each in history}) == 3
    assert there.left() == []


def test_rows_that_do_not_fit_are_errors_with_lines(tmp_path: Path) -> None:
    columns = (("id", "int64"), ("area", "string"), ("small", "int8"), ("big", "uint64"))
    there = KeyedLoading(
        Loading(tmp_path),
        tmp_path / "keyed",
        columns=(*columns, ("must", "string")),
        key=("area", "id"),
        not_null=("must",),
    )
    good = {"id": 1, "area": "eu", "small": -128, "big": 2**64 - 1, "must": "x"}
    bad: list[tuple[dict[str, Any], str, str]] = [
        ({"id": None}, "id", "must not be NULL"),
        ({"area": "y" * 2000}, "area", "a key of 2012 bytes"),
        ({"small": 128}, "small", "128"),
        ({"big": -1}, "big", "-1"),
        ({"id": "1"}, "id", '"1" is not a BIGINT'),
        ({"must": None}, "must", "must not be NULL"),
        ({"must": "z" * 5000}, "", "more than 4096 bytes"),
        ({"other": 1}, "other", "no such column"),
    ]
    lines = [{**good, **change} for change, _, _ in bad]
    there.files.put("a.ndjson", ndjson(good, *lines, {**good, "id": 2}))
    there.files.put("b.ndjson", ndjson({**good, "id": 3}))
    with pytest.raises(Malformed, match=r"a\.ndjson, line \d+.*Nothing was loaded"):
        there.copy()
    with pytest.raises(Malformed, match="MAX_ERRORS"):
        there.copy("ON_ERROR=CONTINUE MAX_ERRORS=7")
    with pytest.raises(Malformed, match=r"VALIDATE failed.*id = 3"):
        there.copy("ON_ERROR=CONTINUE VALIDATE (RANGE id BETWEEN 0 AND 2)")
    seen = there.copy("VALIDATION_MODE=RETURN_ERRORS").reports[0].errors
    assert there.rows() == [] and there.left() == [] and there.written() == [[]]
    assert [error.line for error in seen] == list(range(2, len(bad) + 2))
    for error, (_, column, reason) in zip(seen, bad, strict=True):
        assert error.column == column and reason in error.reason
    skipping = there.copy("ON_ERROR=SKIP_FILE")
    assert [report.is_skipped for report in skipping.reports] == [True, False]
    assert [each["id"] for each in there.rows()] == [3]
    assert there.copy("ON_ERROR=CONTINUE").row_count == 2
    assert there.rows() == [{**good, "id": number} for number in (1, 2, 3)]
    there.close()


def test_a_file_cannot_bring_damaged_values(there: KeyedLoading) -> None:
    damaged = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xff")]
    )
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2], "name": damaged}), sink)
    there.files.put("a.parquet", sink.getvalue())
    (report,) = there.copy("ON_ERROR=CONTINUE").reports
    assert [(error.line, error.column) for error in report.errors] == [(2, "name")]
    assert there.rows() == [row(1, "a")]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("ADD_COLUMNS=true", "ALTER TABLE t ADD COLUMN"),
        ("PARTITION BY (id)", "PARTITION BY is for a new table"),
    ],
)
def test_what_keyed_tables_do_not_take(there: KeyedLoading, options: str, reason: str) -> None:
    there.files.put("a.csv", b"id\n1\n")
    with pytest.raises(Malformed, match=reason):
        there.copy(options)
    feed = TableFeed(topic="x", format="upsert")
    there.log.create_topic("x")
    there.tables.create(new_definition("fed", COLUMNS, ["id"], rand=Rand(4), feed=feed))
    with there.loads.copy("fed", lambda: None) as keyed, pytest.raises(Rejected, match="fed by"):
        there.files.copy("COPY INTO fed FROM @s", keyed=keyed)


def test_a_select_computes_rows(there: KeyedLoading) -> None:
    there.files.put("a.csv", b"id,name\n1,a\n2,b\n3,c\n")
    there.copy(source="(SELECT id * 10 AS id, upper(name) AS name FROM @s WHERE id <> 2)")
    assert there.rows() == [row(10, "A"), row(30, "C")]


FORMATS: dict[str, Callable[[list[dict[str, Any]]], bytes]] = {}


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    sink = io.BytesIO()
    kinds = pa.schema([("id", pa.int64()), ("name", pa.string()), ("amount", pa.int64())])
    pq.write_table(pa.Table.from_pylist(rows, kinds), sink, row_group_size=7)
    return sink.getvalue()


FORMATS["parquet"] = _parquet
FORMATS["ndjson"] = lambda rows: ndjson(*rows)
ROW = st.fixed_dictionaries(
    {
        "id": st.integers(0, 40) | st.none(),
        "name": st.none() | st.text("aö\u0000🎉", max_size=300),
        "amount": st.none() | st.integers(-(2**31), 2**31),
    }
)
FILE = st.lists(ROW, max_size=60)


def fits(found: dict[str, Any]) -> bool:
    return found["id"] is not None and (found["amount"] or 0) < 2**31


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    files=st.lists(FILE, min_size=1, max_size=5),
    kind=st.sampled_from(sorted(FORMATS)),
    partitions=st.integers(1, 3),
    skips=st.booleans(),
)
def test_rows_in_are_rows_out(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[dict[str, Any]]],
    kind: str,
    partitions: int,
    skips: bool,
) -> None:
    """The log has exactly the rows that fit, in the order of the files."""
    folder = tmp_path_factory.mktemp("f")
    there = KeyedLoading(Loading(folder), folder / "keyed", partitions=partitions)
    expected: list[dict[str, Any]] = []
    for number, rows in enumerate(files):
        there.files.put(f"{number}.{kind}", FORMATS[kind](rows))
        if all(map(fits, rows)) or not skips:
            expected += filter(fits, rows)
    result = there.copy(f"ON_ERROR={'SKIP_FILE' if skips else 'CONTINUE'}")
    written = there.written()
    for part in written:
        keys = {found["id"] for found in part}
        assert part == [wanted for wanted in expected if wanted["id"] in keys]
    assert result.row_count == len(expected) == sum(map(len, written))
    last = {wanted["id"]: wanted for wanted in expected}
    assert there.rows() == [last[number] for number in sorted(last)]
    there.close()


def test_a_kill_at_any_step_neither_loses_nor_repeats(tmp_path: Path) -> None:
    """Others write between the kill and the start after it: what they wrote is not undone."""
    loading = Loading(tmp_path)
    rows = [row(number % 30, f"{number:040d}", number) for number in range(80)]
    loading.put("a.ndjson", ndjson(*rows[:50]))
    loading.put("b.ndjson", ndjson(*rows[50:]))
    steps, begun, resumed = 0, 0, 0
    while True:
        folder = tmp_path / f"kill-{steps}"
        there = KeyedLoading(loading, folder, partitions=2, countdown=Countdown(steps))
        try:
            there.copy()
            is_killed = False
        except Killed:
            is_killed = True
        there.close()
        there = KeyedLoading(loading, folder, partitions=2)
        before = there.written()
        pending = there.tables.loads("t").pending()
        others = pa.table({"id": [0, 1, 2], "name": ["other"] * 3})
        there.upsert(others)
        if pending is not None:
            begun += 1
            resumed += any(before)
            assert there.loads._go_on("t")
        there.copy()
        assert there.copy().row_count == 0
        found = [[r for r in part if r["name"] != "other"] for part in there.written()]
        for part in found:
            keys = {r["id"] for r in part}
            assert part == [r for r in rows if r["id"] in keys]
        assert sum(map(len, found)) == len(rows)
        assert there.left() == []
        last = {r["id"]: r for part in there.written() for r in part}
        assert there.rows() == [last[number] for number in sorted(last)]
        there.close()
        if not is_killed:
            break
        steps += 1
    assert steps > 15 and begun > 8 and resumed > 4


def test_a_full_log_interrupts_a_load_that_then_goes_on(
    there: KeyedLoading, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.files.put("a.ndjson", ndjson(*(row(n, "x" * 100) for n in range(100))))
    append, refused = there.log.append, 0

    def refuse(*args: Any, **more: Any) -> Any:
        nonlocal refused
        refused += 1
        if refused in (3, 4, 9):
            raise Overloaded("full", retry_after_ms=1)
        return append(*args, **more)

    monkeypatch.setattr(there.log, "append", refuse)
    assert there.copy().row_count == 100
    assert [r["id"] for r in there.rows()] == list(range(100))
    assert sum(map(len, there.written())) == 100


def test_a_stop_interrupts_a_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loading = Loading(tmp_path)
    loading.put("a.ndjson", ndjson(*(row(n, "x" * 100) for n in range(100))))
    there = KeyedLoading(loading, tmp_path / "keyed")
    append = there.log.append

    def stop(*args: Any, **more: Any) -> Any:
        there.loads.close()
        return append(*args, **more)

    monkeypatch.setattr(there.log, "append", stop)
    with pytest.raises(Unresolved, match="goes on by itself"):
        there.copy()
    assert 0 < sum(map(len, there.written())) < 100
    there.close()
    there = KeyedLoading(loading, tmp_path / "keyed")
    assert there.loads._go_on("t")
    assert [r["id"] for r in there.rows()] == list(range(100))
    assert sum(map(len, there.written())) == 100
    there.close()


def test_a_load_that_the_ledger_does_not_know_is_noticed(there: KeyedLoading) -> None:
    """As after a restore of a backup that was taken during a load."""
    there.files.put("a.csv", b"id\n1\n2\n")
    there.copy()
    there.disk.unlink("tables/t/loads/ledger.ckpt")
    with pytest.raises(Conflict, match="not in its copy_history"):
        there.copy()
    assert sum(map(len, there.written())) == 2
    assert there.copy("FORCE=true").row_count == 2
    there.files.put("b.csv", b"id\n3\n")
    assert there.copy().row_count == 1


def test_a_load_goes_on_from_the_ledger_it_began_with_only(tmp_path: Path) -> None:
    """A backup may have the ledger of before one load, and the next one as begun."""
    loading = Loading(tmp_path)
    loading.put("a.csv", b"id\n1\n")
    there = KeyedLoading(loading, tmp_path / "keyed")
    there.copy()
    old = (tmp_path / "keyed/tables/t/loads/ledger.ckpt").read_bytes()
    loading.put("b.csv", b"id\n2\n")
    there.copy()
    there.close()
    loading.put("c.csv", b"id\n3\n")
    there = KeyedLoading(loading, tmp_path / "keyed", countdown=Countdown(3))
    with pytest.raises(Killed):
        there.copy()
    there.close()
    (tmp_path / "keyed/tables/t/loads/ledger.ckpt").write_bytes(old)
    there = KeyedLoading(loading, tmp_path / "keyed")
    assert there.tables.loads("t").pending() is not None
    with pytest.raises(Corrupt, match=r"ledger\.ckpt"):
        there.copy()
    assert not there.loads._go_on("t")
    there.close()


def test_keys_above_the_budget_are_refused_before_the_load_begins(
    there: KeyedLoading, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = there.tables._find("t").usable()
    limit = found.key_bytes + 1024
    monkeypatch.setattr(found, "_config", TablesConfig(key_bytes_max=limit))
    there.files.put("a.ndjson", ndjson(*(row(n % 10) for n in range(20_000))))
    assert there.copy().row_count == 20_000  # few keys, many times
    there.files.put("b.ndjson", ndjson(*(row(n) for n in range(20_000))))
    with pytest.raises(Overloaded, match=r"tables\.key_bytes_max"):
        there.copy()
    assert len(there.rows()) == 10 and there.left() == []


def test_a_dropped_table_takes_its_loads_with_it(there: KeyedLoading) -> None:
    there.files.put("a.csv", b"id\n1\n")
    there.copy()
    loads = there.tables.loads("t")
    loads.make_folder("ab" * 16)
    there.tables.drop("t")
    assert there.disk.list("tables") == []
    with pytest.raises(Unknown):
        there.copy()


def test_rows_that_are_gone_are_missed_only_if_the_log_lacks_them(
    tmp_path: Path,
) -> None:
    """A backup may have a load that has begun, without its rows: the log has them, or it is
    damaged."""
    loading = Loading(tmp_path)
    loading.put("a.ndjson", ndjson(*(row(n, "x" * 100) for n in range(50))))
    for steps in range(12, 60):
        folder = tmp_path / str(steps)
        there = KeyedLoading(loading, folder, countdown=Countdown(steps))
        with pytest.raises(Killed):
            there.copy()
        there.close()
        there = KeyedLoading(loading, folder)
        loads = there.tables.loads("t")
        pending = loads.pending()
        if pending is not None:
            for name in pending.staged:
                there.disk.unlink(f"tables/t/loads/{pending.load_id}/{name}")
            is_whole = sum(map(len, there.written())) == 50
            if is_whole:
                assert there.loads._go_on("t") and there.left() == []
                assert there.copy().known_count == 1
                there.close()
                return
            with pytest.raises(Corrupt, match=r"pending\.ckpt"):
                there.copy()
        there.close()
    pytest.fail("no load was appended as a whole before it was killed")
