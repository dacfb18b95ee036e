"""What a statement says, as frozen dataclasses. Nothing is resolved here: a stage, a connection or
a table may not exist."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeGuard

FormatType = Literal[
    "ndjson", "json", "csv", "parquet", "orc", "avro", "otlp_json", "syslog", "text"
]
FileCompression = Literal["auto", "none", "gzip", "snappy", "zstd", "lz4", "brotli"]
OnError = Literal["abort", "continue", "skip_file"]
TopicFormat = Literal["upsert", "debezium"]
DefinitionKind = Literal["stage", "pipe", "external_table", "view", "source", "sink"]
"""Things that a definition makes. Views and external tables share their names with tables."""


RETRIES = 3
"""Of a pipe that does not say."""
STAGED_ROWS = "staged_rows"
"""What a query of COPY INTO reads: the rows of the files, as they are."""
NEW_ROWS = "new_rows"
"""What CHECK reads: the rows that are to be loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """`FILE_FORMAT=(TYPE=CSV COMPRESSION=AUTO HEADER=true)`."""

    type: FormatType
    compression: FileCompression = "auto"
    header: bool = True
    """CSV: the first line has the names of the columns."""
    skip_lines: int = 0
    """CSV, text: lines before the first one that counts."""
    field_delimiter: str = ","
    quote: str = '"'
    escape: str = ""
    null_if: tuple[str, ...] = ()
    """CSV: texts that are NULL."""
    timestamp_format: str = ""
    """As in `strptime`; empty: ISO 8601."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePath:
    """`@stage/folder/`: a place below the location of a stage."""

    stage: str
    path: str = ""
    """Without a leading slash, and without `..`; empty for the whole stage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSpec:
    """A column of `COPY INTO t (a BIGINT, b)`."""

    name: str
    type: str = ""
    """In capitals, such as `DECIMAL(10, 2)`; empty: inferred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionField:
    """A column of `PARTITION BY (day(time), bucket(16, user_id), region)`."""

    column: str
    transform: Literal["identity", "year", "month", "day", "hour", "bucket", "truncate"] = (
        "identity"
    )
    argument: int = 0
    """Of bucket and truncate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateStage:
    """`CREATE STAGE s URL='s3://b/p/' CONNECTION=name FILE_FORMAT=(…)`."""

    name: str
    or_replace: bool = False
    url: str
    connection: str = ""
    """Name of a connection in the configuration; credentials are never written in a statement."""
    file_format: FileFormat | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListStage:
    """`LIST @s/2026/ [PATTERN='…']`."""

    path: StagePath
    pattern: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeStage:
    """`DESCRIBE @s/2026/`: the inferred schema."""

    path: StagePath
    pattern: str = ""
    files: tuple[str, ...] = ()
    file_format: FileFormat | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateStage:
    """`VALIDATE @s/2026/`: a report per file."""

    path: StagePath
    pattern: str = ""
    files: tuple[str, ...] = ()
    file_format: FileFormat | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCheck:
    """A condition of `VALIDATE (NOT EMPTY, UNIQUE (id), …)`."""

    kind: Literal["not_empty", "max_error_rate", "unique", "range", "query"]
    text: str
    """Exactly as written."""
    columns: tuple[str, ...] = ()
    """Of UNIQUE and RANGE."""
    rate: float = 0.0
    """Of MAX_ERROR_RATE: share of the rows that may be errors."""
    low: str = ""
    """Of RANGE, as SQL."""
    high: str = ""
    query: str = ""
    """Of CHECK: a query on `new_rows` that must return no rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyIntoTable:
    """`COPY INTO t FROM @s/2026/ …` or `COPY INTO t FROM (SELECT … FROM @s/2026/) …`."""

    table: str
    columns: tuple[ColumnSpec, ...] = ()
    source: StagePath
    query: str = ""
    """The SELECT, with `staged_rows` in place of the path; empty: all columns as they are."""
    staged_columns: tuple[ColumnSpec, ...] = ()
    """`(SELECT … FROM @s/2026/ (a BIGINT))`: columns that files need not have, or whose type is not
    inferred."""
    files: tuple[str, ...] = ()
    pattern: str = ""
    file_format: FileFormat | None = None
    mapping: tuple[tuple[str, str], ...] = ()
    """`MAPPING=(body=message, time=ts)`: column of the table, field of the file."""
    on_error: OnError = "abort"
    skip_file_errors: int = 1
    """Errors from which SKIP_FILE skips a file: n of SKIP_FILE_n."""
    max_errors: int | None = None
    max_files: int | None = None
    force: bool = False
    purge: bool = False
    return_errors: bool = False
    """VALIDATION_MODE=RETURN_ERRORS: read and report, load nothing."""
    add_columns: bool = False
    partition_by: tuple[PartitionField, ...] = ()
    checks: tuple[LoadCheck, ...] = ()
    """`VALIDATE (…)`: what must hold for the new rows, or nothing is loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyIntoStage:
    """`COPY INTO @s/out/ FROM (SELECT …)`."""

    target: StagePath
    query: str
    """Exactly as written, without the parentheses."""
    file_format: FileFormat | None = None
    max_file_bytes: int | None = None
    overwrite: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePipe:
    """`CREATE PIPE p SCHEDULE '1 minute' | CRON '…' | ON NEW FILES [RETRIES=n] AS COPY INTO …`.
    Exactly one of `every_s`, `cron` and `on_new_files` is set."""

    name: str
    or_replace: bool = False
    every_s: int | None = None
    cron: str = ""
    on_new_files: bool = False
    retries: int = RETRIES
    """How often a failed run is tried again before the next one is due."""
    copy: CopyIntoTable
    copy_text: str
    """Exactly as written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateExternalTable:
    """`CREATE EXTERNAL TABLE a STORED AS PARQUET LOCATION '@s/archive/' PARTITIONED BY (year)`."""

    name: str
    or_replace: bool = False
    columns: tuple[ColumnSpec, ...] = ()
    """Declared columns; empty: inferred."""
    file_format: FileFormat
    location: StagePath
    pattern: str = ""
    partitioned_by: tuple[ColumnSpec, ...] = ()
    """Columns whose values are in the names of folders: `year=2026/`."""


ConnectorOption = str | int | float | bool | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSource:
    """`CREATE SOURCE s TYPE files FOLDER='/var/log/shop' INTO TOPIC 'shop_lines'`."""

    name: str
    or_replace: bool = False
    type: str
    topic: str
    """Or a pattern such as `shop.{table}`, which the connector fills."""
    connection: str = ""
    """Name of a connection in the configuration."""
    options: tuple[tuple[str, ConnectorOption], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSink:
    """`CREATE SINK s TYPE http CONNECTION=c FROM TOPIC 'orders'`."""

    name: str
    or_replace: bool = False
    type: str
    topic: str
    connection: str = ""
    options: tuple[tuple[str, ConnectorOption], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateView:
    """`CREATE VIEW v AS SELECT …`."""

    name: str
    or_replace: bool = False
    query: str
    """Exactly as written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumnSpec:
    """A column of `CREATE TABLE t (a BIGINT NOT NULL, …)`."""

    name: str
    type: str
    """In capitals, such as `DECIMAL(10, 2)` or `INT UNSIGNED`."""
    not_null: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """`CREATE TABLE [IF NOT EXISTS] t (a BIGINT, b TEXT, PRIMARY KEY (a)) [PARTITIONS 4]`, or with
    `FROM TOPIC 'orders' FORMAT UPSERT | DEBEZIUM`."""

    name: str
    if_not_exists: bool = False
    columns: tuple[TableColumnSpec, ...]
    key: tuple[str, ...]
    partitions: int = 1
    topic: str = ""
    """The topic that feeds the table; empty: it is written to."""
    topic_format: TopicFormat | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddColumn:
    """`ALTER TABLE t ADD COLUMN c TEXT`."""

    table: str
    column: TableColumnSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class WidenColumn:
    """`ALTER TABLE t ALTER COLUMN c TYPE BIGINT`."""

    table: str
    column: TableColumnSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertRows:
    """`INSERT INTO t (a, b) VALUES (1, 'x'), …`, `INSERT INTO t SELECT …`, and the same with
    UPSERT. Either `rows` or `query` is set."""

    table: str
    columns: tuple[str, ...] = ()
    """Empty: all columns, in order."""
    rows: tuple[tuple[str, ...], ...] = ()
    """Expressions, exactly as written."""
    query: str = ""
    """Exactly as written."""
    is_upsert: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRows:
    """`UPDATE t SET a = a + 1, b = 'x' WHERE …`."""

    table: str
    assignments: tuple[tuple[str, str], ...]
    """Column and expression, exactly as written."""
    where: str = ""
    """Exactly as written; empty: all rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRows:
    """`DELETE FROM t WHERE …`."""

    table: str
    where: str = ""
    """Exactly as written; empty: all rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowKeyedTables:
    """`SHOW KEYED TABLES`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneTable:
    """`CREATE TABLE b CLONE a [FOR SYSTEM_VERSION AS OF …]`."""

    name: str
    source: str
    version: int | str | None = None
    """Snapshot id or tag."""
    time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterBy:
    """`ALTER TABLE t CLUSTER BY (a, b)`. No columns: the table's own order."""

    table: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBloom:
    """`ALTER TABLE t SET BLOOM (a, b)`. No columns: none has a bloom filter."""

    table: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    """`SHOW VIEWS`, `SHOW DEFINITIONS`; kind is None for all kinds."""

    kind: DefinitionKind | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """`DROP VIEW [IF EXISTS] v`."""

    kind: DefinitionKind | Literal["table"]
    name: str
    if_exists: bool = False
    purge: bool = False
    """`DROP TABLE t PURGE`: delete its files as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """`PAUSE PIPE p`, `PAUSE SOURCE s`."""

    kind: DefinitionKind
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """`RESUME PIPE p`, `RESUME SOURCE s`."""

    kind: DefinitionKind
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutePipe:
    """`EXECUTE PIPE p`: run it now."""

    name: str


Definition = CreateStage | CreatePipe | CreateExternalTable | CreateView | CreateSource | CreateSink
"""Statements whose text is kept as a file."""
Statement = (
    Definition
    | ListStage
    | DescribeStage
    | ValidateStage
    | CopyIntoTable
    | CopyIntoStage
    | CloneTable
    | CreateTable
    | AddColumn
    | WidenColumn
    | InsertRows
    | UpdateRows
    | DeleteRows
    | ShowKeyedTables
    | ClusterBy
    | SetBloom
    | Show
    | Drop
    | Pause
    | Resume
    | ExecutePipe
)

KINDS: tuple[DefinitionKind, ...] = ("stage", "external_table", "view", "pipe", "source", "sink")
"""In an order in which they can be created: later ones refer to earlier ones."""


KIND_OF: dict[type, DefinitionKind] = {
    CreateStage: "stage",
    CreateExternalTable: "external_table",
    CreateView: "view",
    CreatePipe: "pipe",
    CreateSource: "source",
    CreateSink: "sink",
}


def kind_of(statement: Definition) -> DefinitionKind:
    """Return the kind of thing that a definition makes."""
    return KIND_OF[type(statement)]


def words_of(kind: DefinitionKind | Literal["table"]) -> str:
    """Return the kind as statements write it: `EXTERNAL TABLE`."""
    return kind.replace("_", " ").upper()


def is_definition(statement: Statement) -> TypeGuard[Definition]:
    """Whether the text of a statement is kept as a file."""
    return type(statement) in KIND_OF


def is_reading(statement: Statement) -> bool:
    """Whether a statement changes nothing."""
    return isinstance(statement, Show | ShowKeyedTables | ListStage | DescribeStage | ValidateStage)
