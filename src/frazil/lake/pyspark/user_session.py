"""A SparkSession for people: the catalog and the data source are there, and names are short.

    spark = frazil.lake.session("data")
    spark.table("logs")                                               the table of the lake
    spark.readStream.format("frazil").option("table", "logs").load()  rows as they come

Needs no lock: a node may have the folder meanwhile. In a program that was started by spark-submit,
and where this process has a Spark already, that Spark is used, with a session of our own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frazil.errors import Unavailable, Unknown
from frazil.lake.catalog.catalog import (
    catalog_calls,
    ensure_namespace,
    open_catalog,
    spark_settings,
)
from frazil.lake.config import LakeConfig
from frazil.lake.spark.process import SparkProcess
from frazil.lake.spark.session import settings_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from frazil.lake.pyspark.data_source import FrazilSource

CATALOGS = "spark.sql.catalog."
"""Settings that a session may have of its own, though Spark does not say so."""
STARTED_ONLY = ("spark.driver.", "spark.jars", "spark.local.dir", "spark.master")
"""Settings that somebody else's Spark was started with, or not."""


def session(
    data: str | os.PathLike[str] = "data", config: LakeConfig | None = None
) -> SparkSession:
    """A session over a data folder. Starting takes seconds; `spark.stop()` ends it."""
    config = config or LakeConfig()
    folder = _checked(Path(data))
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError:
        raise Unavailable("this needs PySpark: pip install 'frazil[lake]'") from None
    settings = user_settings(folder, config)
    spark: SparkSession
    if SparkContext._active_spark_context is not None:  # noqa: SLF001
        spark = SparkSession.builder.getOrCreate().newSession()
        for name, value in settings.items():
            if name.startswith(CATALOGS) or spark.conf.isModifiable(name):
                spark.conf.set(name, value)
    elif "PYSPARK_GATEWAY_PORT" in os.environ or SparkContext._gateway is not None:  # noqa: SLF001
        builder = SparkSession.builder
        for name, value in settings.items():
            if not name.startswith(STARTED_ONLY):
                builder = builder.config(name, value)
        spark = builder.getOrCreate()
    else:
        spark = SparkProcess.open(settings).session
    register(spark, folder, config)
    return spark


def user_settings(data: Path, config: LakeConfig) -> dict[str, str]:
    """The settings of such a session: also for `spark-submit --properties-file`."""
    folder = _checked(data)
    with closing(open_catalog(config, folder)) as made, catalog_calls(config):
        ensure_namespace(made, config)
    catalog = spark_settings(config, folder)
    catalog[f"spark.sql.catalog.{config.catalog_name}.default-namespace"] = config.namespace
    return {
        **settings_of(config, catalog, None),
        "spark.sql.defaultCatalog": config.catalog_name,
        # A window is shown when its time is over, and not when the next row comes.
        "spark.sql.streaming.noDataMicroBatches.enabled": "true",
        **config.spark,
    }


def register(spark: SparkSession, data: Path, config: LakeConfig) -> None:
    """Have a new session know the data source."""
    with _active(spark):
        spark.dataSource.register(source_of(data, config))


@contextmanager
def _active(spark: SparkSession) -> Iterator[None]:
    """Make a session that of this thread for the time being. Spark looks there, and not into the
    session it was asked for, whether a name is taken."""
    sessions: Any = getattr(spark._jvm, "org.apache.spark.sql.classic.SparkSession")  # noqa: SLF001
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)  # noqa: SLF001
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def source_of(data: Path, config: LakeConfig) -> type[FrazilSource]:
    """The data source for one folder: `path` need not be said."""
    from frazil.lake.pyspark.data_source import FrazilSource

    class Source(FrazilSource):
        defaults = {"path": str(data.absolute())}  # noqa: RUF012
        lake = config

    return Source


def _checked(data: Path) -> Path:
    if not (data / "log").is_dir():
        raise Unknown(
            f"{data} is no data folder of Frazil: it has no log in it. `frazil up --data …` "
            "makes one"
        )
    return data.absolute()
