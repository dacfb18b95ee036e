"""Tables behind a real REST catalog have each row once, whatever happens to requests."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema

import frazil
from frazil.config import Config, load
from frazil.disk import RealDisk
from frazil.embedded import Embedded
from frazil.errors import Fenced, Unavailable
from frazil.lake import Lake
from frazil.lake.append.appender import Appender
from frazil.lake.append.commit import COMMIT_ID
from frazil.lake.append.log_source import LogSource
from frazil.lake.catalog import rest
from frazil.lake.catalog.catalog import ensure_namespace, open_catalog
from frazil.lake.catalog.file_io import DurableFileIO
from frazil.lake.maintain.maintenance import Maintenance
from frazil.lake.tables.schema import schema_of, sort_order_of, spec_of
from frazil.lake.tables.tables import create_table
from frazil.log import Log
from frazil.model import MiB, SystemRand
from frazil.settings import LakeConfig, TopicConfig
from tests.clients.flaky import IDLE_SECONDS_MAX
from tests.lake.append.test_appender import CLOCK, World, expected
from tests.lake.inline_tasks import run_inline
from tests.lake.maintain.test_maintenance import do_here
from tests.lake.table_builder import without
from tests.live.rest_catalog.proxy import (
    Fault,
    Forward,
    RestProxy,
    lose,
    refuse,
    respond,
    response,
    twice,
)
from tests.live.rest_catalog.server import RestServer
from tests.pages import blocks_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # of PySpark
]

NUMBERS = count(1)
SECRET = "only-tests-know"
PLACES = "SELECT _offset, _row FROM {}"
PAGE = Path(__file__).parents[3] / "docs" / "lake-tables.md"
PAGE_URI = "https://catalog.example/api/catalog"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestServer]:
    with RestServer(tmp_path_factory.mktemp("rest") / "server") as made:
        yield made


@pytest.fixture
def proxy(server: RestServer) -> Iterator[RestProxy]:
    with RestProxy(server.port) as made:
        yield made


@dataclass(slots=True, kw_only=True)
class Rested(World):
    """A log, and tables behind a proxy, in their own namespace."""

    config: LakeConfig
    proxy: RestProxy

    def appender(self) -> Appender:
        return Appender.open(
            LogSource(self.log, self.folder),
            self.catalog,
            self.config,
            run=run_inline,
            clock=CLOCK,
            rand=random.SystemRandom(),
        )

    def commits_to(self, table: str) -> str:
        """Return the prefix of requests that commit to a table."""
        return f"POST /v1/namespaces/{self.config.namespace}/tables/{table} "

    def check(self, commits: int) -> None:
        """Check that every row is there once, in this many of our commits."""
        for name in ("logs", "spans"):
            table = self.catalog.load_table(f"{self.config.namespace}.{name}")
            found = table.scan().select("_offset", "_row").to_arrow().to_pydict()
            rows = sorted(zip(found["_offset"], found["_row"], strict=True))
            assert rows == expected(self.count)
            summaries = [snapshot.summary for snapshot in table.metadata.snapshots]
            assert len({s[COMMIT_ID] for s in summaries if s is not None}) == commits
            assert len(summaries) == commits


@pytest.fixture
def world(tmp_path: Path, proxy: RestProxy) -> Iterator[Rested]:
    folder = tmp_path / "data"
    config = LakeConfig(
        namespace=f"n{next(NUMBERS)}", slice_bytes=20_000, catalog={"uri": proxy.uri}
    )
    with Log.open(RealDisk(folder), clock=CLOCK, rand=random.SystemRandom()) as log:
        for topic in ("otlp_logs", "otlp_spans"):
            log.create_topic(topic, TopicConfig(awaits_lake=True))
        catalog: Catalog = open_catalog(config, folder)
        yield Rested(log=log, folder=folder, catalog=catalog, config=config, proxy=proxy)
        catalog.close()


def test_every_engine_reads_the_same_rows(
    server: RestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the documented settings, tables are updated, filled by Spark and compacted, and every
    engine finds each row once."""
    settings = tmp_path / "frazil.toml"
    example = blocks_of(PAGE, "toml")[0].text
    settings.write_text(example.replace(PAGE_URI, server.uri), encoding="utf-8")
    monkeypatch.setenv("CATALOG_CREDENTIAL", "client:secret")  # as on the page
    folder = tmp_path / "data"
    little = {"driver_memory_bytes": 512 * MiB}
    config = load(str(settings), {"data": str(folder), "lake": little})
    with closing(open_catalog(config.lake, folder)) as catalog:
        ensure_namespace(catalog, config.lake)
        make_older(catalog, config.lake)
        with opened(config) as (world, embedded):
            for _ in range(2):
                world.add(3)
                embedded.flush()
            assert fields(catalog.load_table("telemetry.logs").schema()) == fields(
                schema_of("logs")
            )
            check_all(world, embedded, in_lake=6)
            done = {each.table: each for each in embedded.maintain()}
            assert not any(each.trouble for each in done.values())
            assert (done["logs"].files_joined, done["logs"].files_made) == (2, 1)
            world.add(1)  # these are hot
            embedded.catch_up()
            check_all(world, embedded, in_lake=6)
            by_both = embedded.sql(PLACES.format("logs"), engine="spark").fetchall()
            assert places(by_both) == expected(7)
    with frazil.open(folder, config=settings) as again:
        assert places(again.sql(PLACES.format("logs")).fetchall()) == expected(world.count)


def make_older(catalog: Catalog, config: LakeConfig) -> None:
    """Create a table like one of an older release."""
    create_table(
        catalog,
        (config.namespace, "logs"),
        schema=without(schema_of("logs"), "event_name", "trace_id"),
        spec=spec_of("logs"),
        order=sort_order_of("logs"),
        properties={},
    )


def fields(schema: Schema) -> dict[str, int]:
    return {field.name: field.field_id for field in schema.fields}


@contextmanager
def opened(config: Config) -> Iterator[tuple[World, Embedded]]:
    folder, rand = Path(config.data), SystemRand()
    disk = RealDisk(folder)
    with Log.open(disk, config.log, clock=CLOCK, rand=rand) as log:
        for topic in ("otlp_logs", "otlp_spans", "otlp_metrics"):
            log.create_topic(topic, TopicConfig(awaits_lake=True))
        with (
            Lake.open(log, folder, config.lake, clock=CLOCK, rand=rand, auto_flush=False) as lake,
            Embedded.over(log, disk, config, clock=CLOCK, lake=lake) as embedded,
            closing(open_catalog(config.lake, folder)) as catalog,
        ):
            yield World(log=log, folder=folder, catalog=catalog), embedded


def check_all(world: World, embedded: Embedded, in_lake: int) -> None:
    """Compare the rows of two tables in Spark, PyIceberg and SQL."""
    assert embedded.lake is not None
    spark = embedded.lake.session.spark()
    for name in ("logs", "spans"):
        table = f"frazil.telemetry.{name}"
        assert places(spark.sql(PLACES.format(table)).collect()) == expected(in_lake)
        scan = world.catalog.load_table(f"telemetry.{name}").scan().select("_offset", "_row")
        assert places(scan.to_arrow().to_pylist()) == expected(in_lake)
        by_sql = embedded.sql(PLACES.format(name)).fetchall()
        assert places(by_sql) == expected(world.count)


def places(rows: Iterable[Any]) -> list[tuple[int, int]]:
    found = [tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in rows]
    return sorted(found)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(refuse, id="cut before"),
        pytest.param(lose, id="response lost"),
        pytest.param(twice, id="sent twice"),
        *(pytest.param(respond(status), id=f"{status}") for status in (429, 500, 503)),
        *(
            pytest.param(respond(status, is_done=True), id=f"{status} but done")
            for status in (502, 503, 504)
        ),
    ],
)
def test_a_disturbed_commit_is_checked(world: Rested, fault: Fault) -> None:
    """Each row is in the table once and can be read."""
    appender = world.appender()
    world.add(2)
    appender.append()
    assert isinstance(world.catalog.load_table(f"{world.config.namespace}.logs").io, DurableFileIO)
    world.proxy.inject(world.commits_to("logs"), fault)
    world.add(3)
    done = appender.append()
    assert world.proxy.is_done()
    assert [(each.table, each.row_count) for each in done] == [("logs", 9), ("spans", 9)]
    world.check(commits=2)
    world.add(1)
    appender.append()
    world.check(commits=3)


@pytest.mark.parametrize("fault", [lose, twice, respond(503, is_done=True), refuse])
def test_a_disturbed_compaction_is_checked(world: Rested, fault: Fault) -> None:
    """Files are merged once, and all rows can still be read."""
    appender = world.appender()
    for _ in range(3):
        world.add(1)
        appender.append()
    maintenance = Maintenance(
        lambda: world.catalog, world.config, do_here, clock=CLOCK, rand=random.SystemRandom()
    )
    world.proxy.inject(world.commits_to("logs"), fault)
    done = {each.table: each for each in maintenance.all()}
    assert world.proxy.is_done()
    assert not any(each.trouble for each in done.values())
    assert (done["logs"].files_joined, done["logs"].files_made) == (3, 1)
    world.add(1)
    appender.append()
    world.check(commits=5)


def test_every_request_may_fail(world: Rested) -> None:
    """Each request of a round fails in turn: the round succeeds or names the catalog, and the next
    one appends everything."""
    appender = world.appender()
    world.add(1)
    appender.append()
    request_count = len(world.proxy.request_lines)
    world.add(1)
    appender.append()
    request_count = len(world.proxy.request_lines) - request_count
    assert request_count > 4
    failed = 0
    for number in range(request_count):
        passing: list[Fault] = [lambda request, forward: forward(request)] * number
        world.proxy.inject("", *passing, (refuse, lose, respond(503))[number % 3])
        world.add(1)
        try:
            appender.append()
        except Unavailable as error:
            assert "the catalog frazil does not respond" in str(error)
            failed += 1
        assert world.proxy.is_done()
        appender.append()
    assert 0 < failed < request_count
    world.check(commits=2 + request_count)


def test_a_real_conflict_is_retried(world: Rested) -> None:
    """Our first attempt leaves no files behind."""
    appender = world.appender()
    world.add(1)
    name = f"{world.config.namespace}.logs"
    with closing(open_catalog(world.config, world.folder)) as other:

        def meddle(request: bytes, forward: Forward) -> bytes:
            with other.load_table(name).transaction() as transaction:
                transaction.set_properties({"theirs": "yes"})
                transaction.append(transaction.table_metadata.schema().as_arrow().empty_table())
            return forward(request)

        world.proxy.inject(world.commits_to("logs"), meddle)
        appender.append()
    table = world.catalog.load_table(name)
    assert table.properties["theirs"] == "yes"
    assert len(table.metadata.snapshots) == 2
    lists = {path.name for path in Path(urlsplit(table.location()).path).rglob("snap-*.avro")}
    assert lists == {Path(each.manifest_list).name for each in table.metadata.snapshots}


def test_the_later_of_two_appenders_commits(world: Rested) -> None:
    """Even if the earlier one has its files ready. The later one appends the same rows."""
    earlier = world.appender()
    world.add(1)
    later: list[Appender] = []

    def take_over(request: bytes, forward: Forward) -> bytes:
        later.append(world.appender())
        return forward(request)

    world.proxy.inject(world.commits_to("logs"), take_over)
    with pytest.raises(Fenced, match="was taken over by appender"):
        earlier.append()
    with pytest.raises(Fenced, match="was taken over by appender"):
        earlier.append()
    later[0].append()
    world.check(commits=1)


def test_a_server_outage(world: Rested, server: RestServer) -> None:
    """A round fails at once; the first round after the outage appends everything."""
    appender = world.appender()
    world.add(1)
    appender.append()
    server.kill()
    world.add(1)
    with pytest.raises(Unavailable, match=r"catalog frazil does not respond.*Check that it runs"):
        appender.append()
    with pytest.raises(Unavailable, match=r"catalog frazil does not respond.*Check that it runs"):
        open_catalog(world.config, world.folder)
    server.start()
    appender.append()
    world.check(commits=2)


def test_a_silent_server_times_out(world: Rested, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that may have succeeded is not repeated."""
    appender = world.appender()
    monkeypatch.setattr(rest, "ANSWER_TIMEOUT_S", 0.2)
    go_on = threading.Event()

    def stall(request: bytes, forward: Forward) -> bytes:
        go_on.wait(IDLE_SECONDS_MAX)
        return forward(request)

    def stall_when_done(request: bytes, forward: Forward) -> bytes:
        forward(request)
        go_on.wait(IDLE_SECONDS_MAX)
        return b""

    world.add(1)
    world.proxy.inject(world.commits_to("logs"), stall, stall_when_done)
    appender.append()
    go_on.set()
    world.check(commits=1)


@pytest.mark.parametrize("request_line", ["GET /v1/config", "POST /v1/oauth/tokens"])
def test_a_silent_server_times_out_at_open(
    proxy: RestProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_line: str
) -> None:
    """Also for a token request."""
    monkeypatch.setattr(rest, "ANSWER_TIMEOUT_S", 0.2)
    go_on = threading.Event()

    def stall(request: bytes, forward: Forward) -> bytes:
        go_on.wait(IDLE_SECONDS_MAX)
        return b""

    proxy.inject(request_line, stall)
    tokens = f"{proxy.uri}/v1/oauth/tokens"
    catalog = {"uri": proxy.uri, "credential": f"us:{SECRET}", "oauth2-server-uri": tokens}
    with pytest.raises(Unavailable, match="ReadTimeout") as caught:
        open_catalog(LakeConfig(catalog=catalog), tmp_path)
    assert SECRET not in str(caught.value)
    go_on.set()


@pytest.mark.parametrize(
    ("request_line", "reply", "message"),
    [
        ("GET /v1/config", response(401), r"rejected the request: Unauth.*401 on.*token"),
        (
            "GET /v1/config",
            response(403),
            r"rejected the request: Forbidden.*403 on.*token",
        ),
        ("GET /v1/config?warehouse=none", response(404), r"status 404 on purpose.*lake\.warehouse"),
        ("GET /v1/config", response(200, b"<html>Welcome</html>"), r"ValidationError: .*lake\.cat"),
        (
            "GET /v1/config",
            response(404, b"<html>None</html>"),
            r"RESTError 404: .*lake\.catalog",
        ),
    ],
    ids=["token", "right", "warehouse", "page", "other path"],
)
def test_a_rejected_client_gets_a_clear_error(
    proxy: RestProxy, tmp_path: Path, request_line: str, reply: bytes, message: str
) -> None:
    """The message has the server's error and the settings to check, but no password."""
    proxy.inject(request_line, *[lambda *_: reply] * 2)
    config = LakeConfig(catalog={"uri": proxy.uri, "token": SECRET}, warehouse="none")
    with pytest.raises(Unavailable, match=message) as caught:
        open_catalog(config, tmp_path).list_namespaces()
    assert SECRET not in str(caught.value)


def test_an_expired_token_fails_at_once(world: Rested) -> None:
    """The commit is not retried for minutes."""
    appender = world.appender()
    world.add(1)
    world.proxy.inject(world.commits_to("logs"), *[respond(401)] * 2)
    with pytest.raises(Unavailable, match=r"rejected the commit to .*logs: .*401 on purpose"):
        appender.append()
    appender.append()
    world.check(commits=1)
