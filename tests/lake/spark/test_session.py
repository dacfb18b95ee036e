"""Session: Spark is started on demand, shares the catalog of PyIceberg, and is replaced if dead."""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark import SparkContext

from frazil.errors import Unavailable
from frazil.lake.catalog.catalog import open_catalog, spark_settings
from frazil.lake.spark.jars import JARS
from frazil.lake.spark.session import Session, settings_of
from frazil.model import GiB, MiB
from frazil.settings import LakeConfig

# PySpark leaves it to the collector to close the sockets over which results come.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

GONE_WITHIN_S = 60
"""Timeout for a process to end, which takes a second."""

CONFIG = LakeConfig(driver_memory_bytes=512 * MiB, worker_memory_bytes=2 * GiB)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake:
    """A data folder and a session."""

    data: Path
    session: Session


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """Shared by the module, as a start takes seconds. A test may find it dead."""
    data = tmp_path_factory.mktemp("data")
    open_catalog(CONFIG, data)
    session = Session(CONFIG, spark_settings(CONFIG, data), data / "lake" / "scratch of spark")
    yield Lake(data=data, session=session)
    session.close()


def killed(session: Session) -> int:
    """Kill the Spark process and wait for its end."""
    pid = session.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return pid


def test_no_setting_downloads_anything(tmp_path: Path) -> None:
    settings = settings_of(CONFIG, spark_settings(CONFIG, tmp_path), tmp_path)
    assert not [name for name in settings if name.startswith(("spark.jars", "spark.submit"))]
    class_path = settings["spark.driver.extraClassPath"].split(":")
    assert [Path(entry).name for entry in class_path] == [jar.file_name for jar in JARS]
    assert all(Path(entry).is_file() for entry in class_path)


def test_settings_of_the_user_override_ours() -> None:
    """Our jars stay on the class path."""
    given = {"spark.sql.shuffle.partitions": "64", "spark.driver.extraClassPath": "/own.jar"}
    settings = settings_of(LakeConfig(spark=given), {}, None)
    assert settings["spark.sql.shuffle.partitions"] == "64"
    assert settings["spark.driver.extraClassPath"].endswith(f"{JARS[-1].file_name}:/own.jar")


def test_jars_are_sent_to_a_cluster() -> None:
    given = {"spark.jars": "/own.jar"}
    settings = settings_of(LakeConfig(master="spark://host:7077", spark=given), {}, None)
    assert settings["spark.jars"].split(",")[-1] == "/own.jar"
    assert len(settings["spark.jars"].split(",")) == len(JARS) + 1
    assert "spark.driver.host" not in settings


def test_missing_jars_are_an_error(tmp_path: Path) -> None:
    """Nothing is started, and the error names the command."""
    session = Session(LakeConfig(jars=str(tmp_path)), {})
    with pytest.raises(Unavailable, match="frazil warm"):
        session.spark()
    assert session.pid is None


# PySpark does not close the pipe to a process that did not start.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_missing_java_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error has Spark's output; a later attempt may succeed."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Unavailable, match=rf"Java 17 or newer(?s:.*){tmp_path}"):
        Session(CONFIG, {}).spark()
    assert SparkContext._gateway is None


def test_spark_and_pyiceberg_share_the_catalog(lake: Lake) -> None:
    open_catalog(CONFIG, lake.data).create_namespace("made_by_pyiceberg")
    spark = lake.session.spark()
    found = spark.sql("SHOW NAMESPACES IN frazil").collect()
    assert "made_by_pyiceberg" in [row[0] for row in found]
    spark.sql("CREATE NAMESPACE frazil.made_by_spark")
    assert ("made_by_spark",) in open_catalog(CONFIG, lake.data).list_namespaces()


def test_tasks_run_in_this_environment_with_a_memory_limit(lake: Lake) -> None:
    tasks = lake.session.spark().sparkContext.parallelize(range(2), 2)
    seen = tasks.map(lambda _: (sys.executable, resource.getrlimit(resource.RLIMIT_AS)[0]))
    assert set(seen.collect()) == {(sys.executable, CONFIG.worker_memory_bytes)}


def test_passwords_are_not_on_the_command_line(lake: Lake) -> None:
    spark = lake.session.spark()
    assert spark.conf.get("spark.sql.catalog.frazil.uri")
    shown = Path(f"/proc/{lake.session.pid}/cmdline").read_bytes()
    assert b"-Xmx512m" in shown
    assert b"spark.sql.catalog." not in shown


def test_a_process_has_one_session(lake: Lake) -> None:
    """A second Spark in this process is an error."""
    spark = lake.session.spark()
    assert lake.session.spark() is spark
    with pytest.raises(Unavailable, match="only one"):
        Session(CONFIG, {}).spark()
    assert lake.session.spark() is spark


def test_errors_of_a_live_spark_are_raised(lake: Lake) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match="nothing_here"), lake.session.use() as spark:
        spark.sql("SELECT * FROM frazil.nothing_here.at_all").collect()


def test_a_dead_spark_is_replaced(lake: Lake) -> None:
    """Its user gets an error. The next use starts another, which deletes the temporary files of
    the dead one."""
    with (
        pytest.raises(Unavailable, match="ended during a job"),
        lake.session.use() as spark,
    ):
        dead = killed(lake.session)
        spark.sql("SELECT 1").collect()
    left = set((lake.data / "lake" / "scratch of spark").iterdir())
    assert left
    with lake.session.use() as spark:
        assert spark.sql("SELECT 40 + 2").collect() == [(42,)]
    assert lake.session.pid != dead
    assert not [path for path in left if path.exists()]


def test_close_ends_the_process(lake: Lake) -> None:
    """PySpark is as before the first start."""
    lake.session.spark()
    pid = lake.session.pid
    lake.session.close()
    assert lake.session.pid is None
    assert not Path(f"/proc/{pid}").exists()
    assert SparkContext._gateway is None


def test_spark_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    program = (
        "import signal\n"
        "from pathlib import Path\n"
        "from frazil.settings import LakeConfig\n"
        "from frazil.lake.spark.session import Session\n"
        "session = Session(LakeConfig(), {}, Path('scratch'))\n"
        "session.spark()\n"
        "print(session.pid, flush=True)\n"
        "signal.pause()\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=tmp_path) as owner:
        assert owner.stdout is not None
        spark = os.pidfd_open(int(owner.stdout.readline()))
        owner.kill()
    try:
        assert select.select([spark], [], [], GONE_WITHIN_S)[0], "Spark is still there"
    finally:
        os.close(spark)
