"""lake: appends the log to Iceberg tables, each offset once. Needs Spark, Java and PyIceberg, but
can be imported without them.

    config.py        LakeConfig
    kafka_config.py  KafkaConfig
    lake.py          Lake: the tables of a log, and the thread that fills them

    append/          from the log, or Kafka, into the tables
    catalog/         the Iceberg catalog
    files/           Parquet data files
    maintain/        compaction, snapshot expiry, orphan files
    pyspark/         Spark for users: session, shell, SQL, data source
    read/            rows by offset, from tables and log combined
    scan/            the tables as queries read them
    spark/           the Spark process and its jobs
    tables/          table definitions: schema, field ids, properties

On disk, in the data folder, unless `lake.catalog` and `lake.warehouse` are set:

    lake/catalog.db    current metadata location of each table
    lake/warehouse/    metadata and data files
    lake/readers/      progress of named readers
    lake/scratch/      Spark's temporary files

One thread appends to the tables and maintains them. Tasks run in other processes.
"""

from frazil.lake.append.appender import Appended, Appender, Covered
from frazil.lake.append.kafka_source import KafkaSource
from frazil.lake.append.log_source import bytes_behind, source_of
from frazil.lake.append.progress import LakeActivity
from frazil.lake.catalog.catalog import catalog_path, catalog_properties, open_catalog
from frazil.lake.config import LakeConfig
from frazil.lake.kafka_config import KafkaConfig
from frazil.lake.lake import Lake
from frazil.lake.maintain.compaction import is_small
from frazil.lake.maintain.maintenance import TARGET_BYTES, Maintained
from frazil.lake.pyspark.shell import open_shell, run_script
from frazil.lake.pyspark.sql import query_spark, whole
from frazil.lake.pyspark.user_session import session, user_settings
from frazil.lake.read.follower import FollowedRows, Follower
from frazil.lake.read.followers import Followers
from frazil.lake.read.prefetch import ReadLimits
from frazil.lake.read.topic_tables import TopicRows, TopicTables
from frazil.lake.scan.catalog_info import CatalogInfo, catalog_info_of
from frazil.lake.scan.data_file import SnapshotInfo, TableFile, TablesView, TableView
from frazil.lake.scan.table_info import (
    ColumnInfo,
    PartitionInfo,
    SchemaInfo,
    SnapshotSummary,
    TableInfo,
)
from frazil.lake.scan.view import LakeView
from frazil.lake.spark.jars import default_folder as jars_folder
from frazil.lake.spark.jars import is_installed, warm, wrong_jars
from frazil.lake.spark.session import OnSpark, Session

__all__ = [
    "TARGET_BYTES",
    "Appended",
    "Appender",
    "CatalogInfo",
    "ColumnInfo",
    "Covered",
    "FollowedRows",
    "Follower",
    "Followers",
    "KafkaConfig",
    "KafkaSource",
    "Lake",
    "LakeActivity",
    "LakeConfig",
    "LakeView",
    "Maintained",
    "OnSpark",
    "PartitionInfo",
    "ReadLimits",
    "SchemaInfo",
    "Session",
    "SnapshotInfo",
    "SnapshotSummary",
    "TableFile",
    "TableInfo",
    "TableView",
    "TablesView",
    "TopicRows",
    "TopicTables",
    "bytes_behind",
    "catalog_info_of",
    "catalog_path",
    "catalog_properties",
    "is_installed",
    "is_small",
    "jars_folder",
    "open_catalog",
    "open_shell",
    "query_spark",
    "run_script",
    "session",
    "source_of",
    "user_settings",
    "warm",
    "whole",
    "wrong_jars",
]
