"""A SparkSession for users, with the catalog and the data source registered.

    spark = frazil.lake.session("data")
    spark.table("logs")                                               the table in the lake
    spark.readStream.format("frazil").option("table", "logs").load()  rows as they arrive

Needs no lock: a node may use the folder at the same time. Under spark-submit, or if this process
has started Spark already, that Spark is used with a new session.
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
from frazil.lake.spark.process import SparkProcess
from frazil.lake.spark.session import settings_of
from frazil.settings import LakeConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from frazil.lake.pyspark.data_source import FrazilSource

CATALOGS = "spark.sql.catalog."
"""Settings that a session may change, although Spark reports them as not modifiable."""
STARTED_ONLY = ("spark.driver.", "spark.jars", "spark.local.dir", "spark.master")
"""Settings that only take effect when Spark starts."""


def session(
    data: str | os.PathLike[str] = "data", config: LakeConfig | None = None
) -> SparkSession:
    """Return a session over a data folder. Starting takes seconds; `spark.stop()` ends it."""
    config = config or LakeConfig()
    folder = _checked(Path(data))
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError:
        raise Unavailable("PySpark is not installed: pip install 'frazil[lake]'") from None
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
    """Return the settings of a session, also for `spark-submit --properties-file`."""
    folder = _checked(data)
    with closing(open_catalog(config, folder)) as opened, catalog_calls(config):
        ensure_namespace(opened, config)
    catalog = spark_settings(config, folder)
    catalog[f"spark.sql.catalog.{config.catalog_name}.default-namespace"] = config.namespace
    return {
        **settings_of(config, catalog, None),
        "spark.sql.defaultCatalog": config.catalog_name,
        # Emit a window when its time is over, not when the next row arrives.
        "spark.sql.streaming.noDataMicroBatches.enabled": "true",
        **config.spark,
    }


def register(spark: SparkSession, data: Path, config: LakeConfig) -> None:
    """Register the data source with a session."""
    with _active(spark):
        spark.dataSource.register(source_class(data, config))


@contextmanager
def _active(spark: SparkSession) -> Iterator[None]:
    """Make a session the active one of this thread. Spark checks there, and not in the given
    session, whether a name is taken."""
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


def source_class(data: Path, config: LakeConfig) -> type[FrazilSource]:
    """Return the data source class with `path` preset to a folder."""
    from frazil.lake.pyspark.data_source import FrazilSource

    class Source(FrazilSource):
        defaults = {"path": str(data.absolute())}  # noqa: RUF012
        lake = config

    return Source


def _checked(data: Path) -> Path:
    if not (data / "log").is_dir():
        raise Unknown(
            f"{data} is not a data folder of Frazil: it has no log. "
            "`frazil up --data …` creates one"
        )
    return data.absolute()
