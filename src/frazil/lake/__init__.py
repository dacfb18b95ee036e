"""lake: the log frozen into Iceberg tables, each offset once. Needs Spark, Java and PyIceberg, and
says so where they are missing; without them it can be imported all the same.

    lake.py           Lake: the tables beside a log, and the thread that fills them
    config.py         LakeConfig

    append.py         Appender: rounds from a log to tables
    topics.py         other topics as tables
    feed.py           where rows come from: our log, by its files
    kafka_feed.py     or a Kafka
    kafka_brokers.py  what the driver asks it
    kafka_range.py    what a task reads of it
    kafka_config.py   KafkaConfig
    slices.py         what one task takes
    task.py           what one task does
    on_spark.py       tasks on Spark
    commit.py         files and offsets in one step, or neither

    maintain.py       Maintenance: what tables need besides new rows
    schedule.py       when that is due
    doing.py          Doing: what is done to the tables now
    compact.py        which files are to be joined
    merge.py          what one task of that does
    rewrite.py        files for files in one step, or not at all
    expire.py         which snapshots stay
    orphans.py        files that nobody names
    reach.py          which files somebody does name
    removal.py        taking files away
    view.py           LakeView: what queries see of the tables
    cold.py           a snapshot, its files, and what is known of them
    manifests.py      that, read from manifests
    snapshot_facts.py what is known of snapshots
    table_facts.py    what is known of a table, for people who look at it
    shown.py          the catalog, for people: without its secrets
    topic_tables.py   TopicTables: other topics as tables, for queries
    topic_tails.py    their rows that are in the log only

    tables.py         tables made, and brought up to date
    evolution.py      what somebody has changed in one
    schemas.py        their columns in Iceberg's words
    field_ids.py      the number of every field, for good
    layout.py         how rows lie: order, filters, settings
    catalog.py        the catalog, for PyIceberg and for Spark
    rest_catalog.py   a REST catalog that is not waited for without end
    landed.py         commits that were done, though called refused
    durable_io.py     metadata that is on disk before anybody is told

    parquet.py        data files
    row_order.py      rows by day, and in order
    file_layout.py    their columns
    file_metrics.py   what a manifest says of them
    sink.py           where Arrow writes to
    store.py          where files are written to: a folder or a bucket

    follow.py         Follower: rows from long ago up to now, and on as they come
    start.py          where a new one begins
    followers.py      Followers: each name once at a time
    reader.py         TableReader: rows of a table in the order of the log
    reader_progress.py  how far named readers have come
    snapshots.py      which files hold which offsets
    windows.py        offsets, and the files of their rows
    window_rows.py    these rows, weighed, read, sorted
    ahead.py          rows read before they are asked for
    tail.py           rows of the live end of the log

    session.py        Session: the one place where a SparkSession is made
    spark_process.py  its process
    workers.py        what its Python processes are forked from
    jars.py           its jars

    user_session.py   a SparkSession for people
    shell.py          a shell with one, and scripts
    questions.py      SQL on Spark over hot and lake
    data_source.py    the PySpark data source `frazil`
    asked.py          its options
    history.py        rows by their offsets, from the log or from the lake
    cold_rows.py      those that are in the lake only

On disk, below the data folder, unless `lake.catalog` and `lake.warehouse` say otherwise:

    lake/catalog.db    which metadata each table has now
    lake/warehouse/    metadata and data files
    lake/readers/      how far readers have come
    lake/scratch/      Spark's temporary files

One thread fills the tables and does whatever else is done to them. Tasks are other processes.
"""

from frazil.lake.ahead import ReadLimits
from frazil.lake.append import Appended, Appender, Covered
from frazil.lake.catalog import catalog_path, catalog_properties, open_catalog
from frazil.lake.cold import ColdFile, SnapshotFacts, TableView, View
from frazil.lake.compact import is_small
from frazil.lake.config import LakeConfig
from frazil.lake.doing import Doing
from frazil.lake.feed import bytes_behind, source_of
from frazil.lake.follow import Followed, Follower
from frazil.lake.followers import Followers
from frazil.lake.jars import default_folder as jars_folder
from frazil.lake.jars import is_installed, warm, wrong_jars
from frazil.lake.kafka_config import KafkaConfig
from frazil.lake.kafka_feed import KafkaFeed
from frazil.lake.lake import Lake
from frazil.lake.maintain import TARGET_BYTES, Maintained
from frazil.lake.questions import ask as ask_spark
from frazil.lake.questions import whole
from frazil.lake.session import OnSpark, Session
from frazil.lake.shell import open_shell, run_script
from frazil.lake.shown import CatalogShown, catalog_shown
from frazil.lake.table_facts import (
    ColumnFacts,
    PartitionFacts,
    SchemaFacts,
    SnapshotSummary,
    TableFacts,
)
from frazil.lake.topic_tables import TopicRows, TopicTables
from frazil.lake.user_session import session, user_settings
from frazil.lake.view import LakeView

__all__ = [
    "TARGET_BYTES",
    "Appended",
    "Appender",
    "CatalogShown",
    "ColdFile",
    "ColumnFacts",
    "Covered",
    "Doing",
    "Followed",
    "Follower",
    "Followers",
    "KafkaConfig",
    "KafkaFeed",
    "Lake",
    "LakeConfig",
    "LakeView",
    "Maintained",
    "OnSpark",
    "PartitionFacts",
    "ReadLimits",
    "SchemaFacts",
    "Session",
    "SnapshotFacts",
    "SnapshotSummary",
    "TableFacts",
    "TableView",
    "TopicRows",
    "TopicTables",
    "View",
    "ask_spark",
    "bytes_behind",
    "catalog_path",
    "catalog_properties",
    "catalog_shown",
    "is_installed",
    "is_small",
    "jars_folder",
    "open_catalog",
    "open_shell",
    "run_script",
    "session",
    "source_of",
    "user_settings",
    "warm",
    "whole",
    "wrong_jars",
]
