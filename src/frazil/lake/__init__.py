"""lake: Iceberg tables filled from the log, each offset exactly once. Needs Spark, Java and
PyIceberg at run time, not at import.

    log or Kafka ──append──> tables ──scan──> queries
    keyed tables ──keyed───> │    └──read──> followers, streams
                             └──maintain: merge, expire, delete orphans

    lake.py          Lake: the tables of one log, and the thread that fills them
    freezing.py      Freezing: when keyed tables are frozen
    job_queue.py     JobQueue: jobs of other threads
    lake_copy.py     LakeCopy: copies catalog and tables while they are used

    loaded/          tables loaded from files: plan, data files, ledger, commit
    append/          commits records of the log, or of Kafka, to the tables
    keyed/           keyed tables: freeze, compaction, rows of a snapshot
    tables/          table definitions: schema, field ids, properties
    files/           Parquet data files
    catalog/         the Iceberg catalog
    spark/           the Spark process and its jobs
    maintain/        compaction, snapshot expiry, orphan files
    scan/            what queries see of the tables
    read/            rows by offset, from tables and log as one
    pyspark/         Spark for users: session, shell, SQL, data source

On disk, below the data folder, unless set by `lake.catalog` and `lake.warehouse`:

    lake/catalog.db    the SQLite catalog
    lake/warehouse/    metadata and data files
    lake/readers/      progress of readers
    lake/scratch/      temporary files of Spark
    lake/handoff/      rows of a keyed table on their way to tasks

All work on tables runs on one thread. Tasks run in other processes.
"""

from frazil.lake.append.appender import Appended, Appender, Covered
from frazil.lake.append.kafka_admin import KafkaTopic
from frazil.lake.append.kafka_changes import KafkaChanges
from frazil.lake.append.kafka_source import KafkaSource
from frazil.lake.append.log_source import bytes_behind, source_of
from frazil.lake.append.progress import LakeActivity
from frazil.lake.catalog.catalog import (
    catalog_path,
    catalog_properties,
    open_catalog,
    probe_warehouse,
)
from frazil.lake.files.sink import ArrowSink
from frazil.lake.keyed.definition import KeyedColumn, KeyedDefinition
from frazil.lake.keyed.frozen_table import frozen_table
from frazil.lake.keyed.source import (
    FrozenPosition,
    FrozenRows,
    FrozenTable,
    KeyedSource,
    PartitionChanges,
)
from frazil.lake.lake import Lake
from frazil.lake.lake_copy import CATALOG as CATALOG_PATH
from frazil.lake.lake_copy import CopiedTable, LakeCopy, check_embedded
from frazil.lake.loaded.alter_table import cluster_by, set_bloom
from frazil.lake.loaded.clone_table import CloneResult, CloneSource, clone_table
from frazil.lake.loaded.load_commit import LoadChange, commit_load
from frazil.lake.loaded.load_reader import loaded_rows
from frazil.lake.loaded.load_table import (
    COMMENT,
    LoadConflict,
    LoadTable,
    LoadTarget,
    PartitionBy,
    arrow_schema,
    find_table,
    plan_load,
    plan_new_table,
)
from frazil.lake.loaded.load_writer import LoadedFile, LoadWriter
from frazil.lake.loaded.log_ledger import LOADS_FOLDER, LogLedger
from frazil.lake.maintain.maintained import Maintained
from frazil.lake.maintain.row_condition import (
    RowCondition,
    cut_ms,
    cut_step_ms,
    erasure_condition,
    retention_condition,
)
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
from frazil.lake.spark.jobs import JobGroup, TaskRunner, attempt_name, do_on
from frazil.lake.spark.session import OnSpark, Session
from frazil.lake.tables.properties import TARGET_BYTES, TOPIC_PREFIX, is_small

__all__ = [
    "CATALOG_PATH",
    "COMMENT",
    "LOADS_FOLDER",
    "TARGET_BYTES",
    "TOPIC_PREFIX",
    "Appended",
    "Appender",
    "ArrowSink",
    "CatalogInfo",
    "CloneResult",
    "CloneSource",
    "ColumnInfo",
    "CopiedTable",
    "Covered",
    "FollowedRows",
    "Follower",
    "Followers",
    "FrozenPosition",
    "FrozenRows",
    "FrozenTable",
    "JobGroup",
    "KafkaChanges",
    "KafkaSource",
    "KafkaTopic",
    "KeyedColumn",
    "KeyedDefinition",
    "KeyedSource",
    "Lake",
    "LakeActivity",
    "LakeCopy",
    "LakeView",
    "LoadChange",
    "LoadConflict",
    "LoadTable",
    "LoadTarget",
    "LoadWriter",
    "LoadedFile",
    "LogLedger",
    "Maintained",
    "OnSpark",
    "PartitionBy",
    "PartitionChanges",
    "PartitionInfo",
    "ReadLimits",
    "RowCondition",
    "SchemaInfo",
    "Session",
    "SnapshotInfo",
    "SnapshotSummary",
    "TableFile",
    "TableInfo",
    "TableView",
    "TablesView",
    "TaskRunner",
    "TopicRows",
    "TopicTables",
    "arrow_schema",
    "attempt_name",
    "bytes_behind",
    "catalog_info_of",
    "catalog_path",
    "catalog_properties",
    "check_embedded",
    "clone_table",
    "cluster_by",
    "commit_load",
    "cut_ms",
    "cut_step_ms",
    "do_on",
    "erasure_condition",
    "find_table",
    "frozen_table",
    "is_installed",
    "is_small",
    "jars_folder",
    "loaded_rows",
    "open_catalog",
    "open_shell",
    "plan_load",
    "plan_new_table",
    "probe_warehouse",
    "query_spark",
    "retention_condition",
    "run_script",
    "session",
    "set_bloom",
    "source_of",
    "user_settings",
    "warm",
    "whole",
    "wrong_jars",
]
