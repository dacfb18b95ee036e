"""Tables behind a real REST catalog: each row once, whatever becomes of requests and answers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog

from frazil.disk import RealDisk
from frazil.lake.append import Appender
from frazil.lake.catalog import open_catalog
from frazil.lake.commit import COMMIT_ID
from frazil.lake.config import LakeConfig
from frazil.lake.feed import LogFeed
from frazil.log import Log, TopicConfig
from tests.lake.test_append import CLOCK, World, expected, run_here
from tests.live.rest_proxy import Fault, RestProxy, lose, refuse, say, twice
from tests.live.rest_server import RestServer

pytestmark = pytest.mark.xdist_group("rest_catalog")  # one server for all of them

NUMBERS = count(1)


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
    """A log, and tables behind a proxy, in a namespace of their own."""

    config: LakeConfig
    proxy: RestProxy

    def appender(self) -> Appender:
        return Appender.open(
            LogFeed(self.log, self.folder),
            self.catalog,
            self.config,
            run=run_here,
            clock=CLOCK,
            rand=random.SystemRandom(),
        )

    def commits_to(self, table: str) -> str:
        """How the requests begin that commit to a table."""
        return f"POST /v1/namespaces/{self.config.namespace}/tables/{table} "

    def check(self, commits: int) -> None:
        """Every row once, read by somebody else, in as many commits of ours."""
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


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(refuse, id="cut before"),
        pytest.param(lose, id="answer lost"),
        pytest.param(twice, id="asked twice"),
        *(pytest.param(say(status), id=f"{status}") for status in (429, 500, 502, 503, 504)),
        *(
            pytest.param(say(status, is_done=True), id=f"{status} but done")
            for status in (500, 502, 503, 504)
        ),
    ],
)
def test_whatever_becomes_of_a_commit(world: Rested, fault: Fault) -> None:
    """It is looked up whether it was done. Each row is there once, and can be read."""
    appender = world.appender()
    world.add(2)
    appender.append()
    world.proxy.hurt(world.commits_to("logs"), fault)
    world.add(3)
    done = appender.append()
    assert world.proxy.is_done()
    assert [(each.table, each.row_count) for each in done] == [("logs", 9), ("spans", 9)]
    world.check(commits=2)
    world.add(1)
    appender.append()
    world.check(commits=3)
