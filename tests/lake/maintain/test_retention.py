"""Retention removes exactly the rows that a plain computation says, whatever kills it; a purge
leaves no byte of them below the table's folder."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import fastavro
import pyarrow.parquet as pq
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from frazil.disk import RealDisk
from frazil.errors import InvalidSetting, Malformed
from frazil.lake.append.commit import next_offsets, removed_offsets
from frazil.lake.catalog.catalog import open_catalog
from frazil.lake.maintain.expire_snapshots import removed_rows
from frazil.lake.maintain.maintenance import Maintenance
from frazil.lake.maintain.replace_files import MANIFESTS_MAX
from frazil.lake.maintain.row_condition import check_condition, check_rules, erasure_condition
from frazil.log import Log
from frazil.model import TopicPartition
from frazil.settings import RetentionRule, TopicConfig, retention_rules
from tests.lake.append.test_appender import CLOCK, SMALL, World
from tests.lake.maintain.test_maintenance import Later, do_here, load, path_of

DAY_MS = 86_400_000
TODAY_MS = (CLOCK.wall_ms() - DAY_MS // 2) // DAY_MS * DAY_MS
"""The day of the last noon: snapshots have the time of the system, and none may be older."""
SERVICES = ("shop", "audit", "debug")
RULES = {"logs": "10d", "logs where service_name = 'audit'": "40d"}
RULES |= {"logs where service_name in ('audit', 'debug')": "3d"}
DAYS = {"shop": 10, "audit": 40, "debug": 3}
"""What these rules mean, by service: the longest condition wins over the table."""

Row = tuple[int, str, str]
"""Age in days, service, body."""


def no_tasks(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    assert not items, "read a file"
    return []


class Noon(Later):
    """The last noon before the tests began, or some time later."""

    def wall_ms(self) -> int:
        return TODAY_MS + DAY_MS // 2 + self._ahead_ms


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    folder = tmp_path / "data"
    with Log.open(RealDisk(folder), clock=CLOCK, rand=random.SystemRandom()) as log:
        for topic in ("otlp_logs", "otlp_spans"):
            log.create_topic(topic, TopicConfig(awaits_lake=True))
        catalog = open_catalog(SMALL, folder)
        yield World(log=log, folder=folder, catalog=catalog)
        catalog.close()


def maintenance(
    world: World,
    rules: dict[str, str],
    ahead_ms: int = 0,
    owns: Callable[[str], bool] = lambda _: True,
) -> Maintenance:
    return Maintenance(
        lambda: world.catalog,
        SMALL,
        do_here,
        clock=Noon(ahead_ms),
        rand=random.SystemRandom(),
        rules=retention_rules(rules),
        owns=owns,
    )


def fill(world: World, seed: int, count: int = 300) -> list[Row]:
    """Append rows of three services and forty-five days, several per request."""
    rand = random.Random(seed)
    appender = world.open()
    rows = [
        (rand.randrange(45), rand.choice(SERVICES), f"marker-{number}.") for number in range(count)
    ]
    for at in range(0, count, 10):
        world._put("otlp_logs", request(rows[at : at + 10]))
        if at % 100 == 0:
            appender.append()
    appender.append()
    return rows


def request(rows: list[Row]) -> bytes:
    made = ExportLogsServiceRequest()
    for age_days, service, body in rows:
        resource = made.resource_logs.add()
        # Manifests have bounds of hosts, but not of bodies.
        for key, value in (("service.name", service), ("host.name", body)):
            resource.resource.attributes.add(key=key).value.string_value = value
        record = resource.scope_logs.add().log_records.add()
        record.time_unix_nano = (TODAY_MS - age_days * DAY_MS + 1) * 1_000_000
        record.body.string_value = body
    return made.SerializeToString()


def bodies(table: Table) -> list[str]:
    """Read by PyIceberg."""
    return sorted(table.scan().to_arrow()["body"].to_pylist())


def kept(rows: list[Row], days: dict[str, int]) -> list[str]:
    # A cut is the beginning of a UTC day, and every row is a millisecond after one.
    return sorted(body for age, service, body in rows if age <= days[service])


def markers_in(table: Table) -> set[str]:
    """Markers anywhere below the table's folder: in rows, and in the compressed bounds of columns
    of manifests."""
    found = b""
    for path in path_of(table.location()).rglob("*"):
        if path.is_file():
            found += path.read_bytes()
            if path.suffix == ".parquet":
                found += repr(pq.read_table(path).to_pydict()).encode()
                hosts = pq.read_table(path, columns=["host_name"], read_dictionary=["host_name"])
                for chunk in hosts["host_name"].chunks:  # entries that no row uses, too
                    found += repr(chunk.dictionary.to_pylist()).encode()
            if path.suffix == ".avro":
                with path.open("rb") as file:
                    found += repr(list(fastavro.reader(file))).encode()
    return {each.decode() for each in re.findall(rb"marker-\d+\.", found)}


@pytest.mark.parametrize("seed", range(1))
def test_exactly_the_expired_rows_go(world: World, seed: int) -> None:
    """Whatever the rules overlap. Nothing is left to do afterwards, and offsets stay."""
    rows = fill(world, seed)
    offsets = next_offsets(load(world))
    maintain = maintenance(world, RULES)
    (done,) = maintain.apply_retention()
    table = load(world)
    assert bodies(table) == kept(rows, DAYS)
    assert done.rows_removed == len(rows) - len(kept(rows, DAYS))
    assert done.trouble == ()
    assert next_offsets(table) == offsets
    assert maintain.retain("logs").is_nothing
    assert maintenance(world, RULES).retain("logs").is_nothing
    assert markers_in(table) == set(kept(rows, DAYS))


def test_a_rule_of_a_table_removes_whole_files(world: World) -> None:
    """By their bounds alone: no task runs, and no file is written."""
    rows = fill(world, 7)
    maintain = Maintenance(
        lambda: world.catalog,
        SMALL,
        no_tasks,
        clock=Noon(0),
        rand=random.SystemRandom(),
        rules=retention_rules({"logs": "10d"}),
    )
    done = maintain.retain("logs")
    assert done.files_dropped > 0
    assert done.files_rewritten == 0
    assert bodies(load(world)) == kept(rows, dict.fromkeys(SERVICES, 10))


def test_older_snapshots_go_with_the_rows_even_if_tagged(world: World) -> None:
    """Young ones stay for queries that still use them; later no tag keeps them."""
    rows = [(age, "shop", f"marker-{age}") for age in (1, 30)]
    appender = world.open()
    world._put("otlp_logs", request(rows))
    appender.append()
    table = load(world)
    before = table.current_snapshot()
    assert before is not None
    table.manage_snapshots().create_tag(before.snapshot_id, "mine").commit()
    maintain = maintenance(world, RULES)
    while not maintain.retain("logs").is_nothing:
        continue
    assert load(world).snapshot_by_name("mine") is not None
    done = maintenance(world, RULES, ahead_ms=2 * DAY_MS).retain("logs")
    assert "mine" in done.tags_dropped
    table = load(world)
    assert table.snapshot_by_id(before.snapshot_id) is None
    assert bodies(table) == ["marker-1"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("commit_number", [0, 1, 2], ids=["removal", "manifests", "expiry"])
def test_a_kill_at_a_commit_removes_no_other_row_and_leaves_no_byte(
    world: World, monkeypatch: pytest.MonkeyPatch, commit_number: int, when: str
) -> None:
    """The next run removes the rest, and what the killed one has left on the disk."""
    rows = fill(world, 9, count=60)
    commit: Callable[..., object] = type(world.catalog).commit_table
    commits = 0

    def killed(self: Catalog, *details: object) -> object:
        nonlocal commits
        commits += 1
        is_last = commits > commit_number
        done = None if is_last and when == "before" else commit(self, *details)
        if is_last:
            raise Killed
        return done

    with monkeypatch.context() as patch:
        patch.setattr(type(world.catalog), "commit_table", killed)
        with pytest.raises(Killed):
            maintenance(world, RULES).apply_retention()
    is_gone = commit_number > 0 or when == "after"
    assert bodies(load(world)) == (kept(rows, DAYS) if is_gone else sorted(b for *_, b in rows))
    (done,) = maintenance(world, RULES).apply_retention()
    assert done.trouble == ()
    table = load(world)
    assert bodies(table) == kept(rows, DAYS)
    assert markers_in(table) == set(kept(rows, DAYS))


def test_an_append_that_was_killed_leaves_no_byte(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files and its manifest are ours, by their names."""
    rows: list[Row] = [(30, "shop", "marker-1."), (1, "shop", "marker-2.")]
    world._put("otlp_logs", request(rows))

    def killed(*_: object) -> object:
        raise Killed

    appender = world.open()
    with monkeypatch.context() as patch:
        patch.setattr(type(world.catalog), "commit_table", killed)
        with pytest.raises(Killed):
            appender.append()
    assert markers_in(load(world)) == {"marker-1.", "marker-2."}
    world.open().append()
    maintenance(world, RULES).apply_retention()
    assert markers_in(load(world)) == {"marker-2."}


@pytest.mark.parametrize("is_late", [False, True])
def test_no_manifest_keeps_bounds_of_removed_rows(world: World, is_late: bool) -> None:
    """Not those that the removal itself wrote and merged, and not once maintenance has expired the
    removal: entries of removed files outlive it."""
    rows: list[Row] = [(number % 9, "shop", f"marker-{number}.") for number in range(50)]
    rows[0] = (30, "shop", "marker-0.")
    first = MANIFESTS_MAX + 2
    appender = world.open()
    for row in rows[:first]:
        world._put("otlp_logs", request([row]))
        appender.append()
    if not is_late:
        maintenance(world, RULES).apply_retention()
        assert markers_in(load(world)) == {body for *_, body in rows[1:first]}
        return
    while not maintenance(world, RULES).retain("logs").is_nothing:
        continue
    for row in rows[first:]:
        world._put("otlp_logs", request([row]))
        appender.append()
    later = maintenance(world, {"logs": "12d"}, ahead_ms=2 * DAY_MS)
    later.expire("logs")
    assert not any(map(removed_rows, load(world).metadata.snapshots))
    later.apply_retention()
    assert markers_in(load(world)) == {body for *_, body in rows[1:]}


def test_files_of_another_writer_are_left_and_reported(world: World) -> None:
    """It may be about to commit them."""
    fill(world, 3, count=20)
    folder = path_of(load(world).location()) / "metadata"
    foreign = folder / f"{uuid4()}-m0.avro"
    foreign.write_bytes(b"x")
    (folder / "00007-x.metadata.json").write_bytes(b"{}")
    (done,) = maintenance(world, RULES).apply_retention()
    assert foreign.exists()
    (trouble,) = done.trouble
    assert trouble.startswith("1 files may have removed rows and belong to no snapshot")
    assert foreign.name in trouble


def test_files_of_another_appender_are_left_and_reported(world: World) -> None:
    """Their names are ours, but the appender of another process may be about to commit them."""
    fill(world, 3, count=20)
    data = path_of(load(world).location()) / "data" / "0123456789ab-00000001-00000.parquet"
    data.write_bytes(b"x")
    (done,) = maintenance(world, RULES, owns=lambda _: False).apply_retention()
    assert data.exists()
    assert any(data.name in trouble for trouble in done.trouble)


def test_the_table_says_up_to_where_copies_must_go(world: World) -> None:
    """The offset after the last removed row, by partition, and not below it later."""
    rows = [(0, "shop", f"row-{number}") for number in range(50)]
    rows[23] = (30, "shop", "late")
    appender = world.open()
    for row in rows:
        world._put("otlp_logs", request([row]))
    appender.append()
    maintenance(world, RULES).apply_retention()
    key = TopicPartition("otlp_logs", 0)
    assert removed_offsets(load(world)) == {key: 24}
    maintenance(world, RULES).erase([erasure_condition("logs", "body = 'row-3'")])
    assert removed_offsets(load(world)) == {key: 24}
    assert bodies(load(world)) == sorted(b for *_, b in rows if b not in ("late", "row-3"))


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("nope = 1", "No field named nope"),
        ("body", "not true or false"),
        ("body =", "Expected"),
        ("true) or (true", "Expected"),
        ("count(*) > 1", "not a condition"),
        ("row_number() over () > 1", "window"),
        ("  ", "empty"),
    ],
)
def test_a_condition_that_does_not_fit_is_refused(where: str, reason: str) -> None:
    """With a reason, before anything is removed."""
    with pytest.raises(Malformed, match=reason):
        check_condition("logs", where)


def test_conditions_of_rules_are_checked() -> None:
    """The error names the setting."""
    check_rules(retention_rules(RULES))
    wrong = RetentionRule(table="spans", where="body = 'x'", age_ms=DAY_MS)
    with pytest.raises(InvalidSetting, match="spans where body = 'x'"):
        check_rules([wrong])
