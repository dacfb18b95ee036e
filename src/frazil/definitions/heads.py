"""The heads of statements: how each begins, and how it is read.

`HEADS` is the whole list: a text that begins with none of them is refused. A new kind of statement
is a dataclass in `statements.py`, a function here, and an entry of `HEADS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from frazil.definitions.connector_grammar import take_create_sink, take_create_source
from frazil.definitions.cron import parse_cron
from frazil.definitions.load_checks import take_checks
from frazil.definitions.options import (
    COMPRESSIONS,
    FORMAT_OPTIONS,
    FORMATS,
    OptionReader,
    take_column_specs,
    take_columns,
    take_count,
    take_file_format,
    take_files,
    take_flag,
    take_interval,
    take_mapping,
    take_on_error,
    take_options,
    take_partition_fields,
    take_pattern,
    take_retries,
    take_staged_columns,
)
from frazil.definitions.statements import (
    RETRIES,
    STAGED_ROWS,
    CloneTable,
    ClusterBy,
    ColumnSpec,
    CopyIntoStage,
    CopyIntoTable,
    CreateExternalTable,
    CreatePipe,
    CreateStage,
    CreateView,
    DefinitionKind,
    DescribeStage,
    Drop,
    ExecutePipe,
    FileFormat,
    ListStage,
    Pause,
    Resume,
    SetBloom,
    Show,
    ShowKeyedTables,
    Statement,
    ValidateStage,
)
from frazil.definitions.table_grammar import (
    take_alter_table,
    take_create_table,
    take_delete,
    take_insert,
    take_update,
)
from frazil.definitions.token_reader import TokenReader
from frazil.errors import Malformed

SELECTION: dict[str, OptionReader] = {
    "pattern": take_pattern,
    "files": take_files,
    "file_format": take_file_format,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementHead:
    """How one kind of statement begins. `words` are unquoted; OR REPLACE may follow CREATE if
    `replaces`."""

    words: tuple[str, ...]
    parse: Callable[[TokenReader, bool], Statement]
    example: str
    replaces: bool = False
    before_path: bool = False
    """Only if a path of a stage follows; else the text is a query for the engine."""


def _create_stage(reader: TokenReader, or_replace: bool) -> Statement:
    name = reader.take_name("a stage")
    options = take_options(
        reader,
        {
            "url": _url,
            "connection": lambda r: r.take_name("a connection"),
            "file_format": take_file_format,
        },
    )
    if "url" not in options:
        reader.fail("URL='s3://bucket/folder/'")
    return CreateStage(name=name, or_replace=or_replace, **options)


def _url(reader: TokenReader) -> str:
    token = reader.token
    url = reader.take_string("an address in single quotes")
    try:
        parts = urlsplit(url)
    except ValueError:
        reader.fail("an address such as 's3://bucket/folder/'", token)
    if not parts.scheme or "://" not in url:
        reader.fail("an address such as 's3://bucket/folder/' or 'file:///folder/'", token)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise Malformed(
            "URL must not have a user, a password, ? or #: credentials belong in a connection of "
            "the configuration, and CONNECTION=name refers to it"
        )
    if ".." in parts.path.split("/"):
        reader.fail("an address without ..", token)
    return url


def _list(reader: TokenReader, _: bool) -> Statement:
    path = reader.take_path()
    return ListStage(path=path, **take_options(reader, {"pattern": take_pattern}))


def _describe(reader: TokenReader, _: bool) -> Statement:
    path = reader.take_path()
    return DescribeStage(path=path, **_selection(reader))


def _validate(reader: TokenReader, _: bool) -> Statement:
    path = reader.take_path()
    return ValidateStage(path=path, **_selection(reader))


def _selection(reader: TokenReader) -> dict[str, Any]:
    return _checked(take_options(reader, SELECTION))


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    if "files" in options and "pattern" in options:
        raise Malformed("write FILES or PATTERN, not both")
    return options


def _copy(reader: TokenReader, _: bool) -> Statement:
    return _copy_into_stage(reader) if reader.is_path() else _copy_into_table(reader)


def _copy_into_table(reader: TokenReader) -> CopyIntoTable:
    table = reader.take_table()
    columns = take_column_specs(reader) if reader.is_sign("(") else ()
    reader.take_words("from")
    query = ""
    staged_columns: tuple[ColumnSpec, ...] = ()
    if reader.is_sign("("):
        query, source, staged_columns = reader.take_staged_query(STAGED_ROWS, take_staged_columns)
    else:
        source = reader.take_path()
    options = _checked(
        take_options(
            reader,
            {
                **SELECTION,
                "mapping": take_mapping,
                "on_error": take_on_error,
                "max_errors": lambda r: r.take_integer("a number", least=0),
                "max_files": take_count,
                "force": take_flag,
                "purge": take_flag,
                "validation_mode": lambda r: r.take_choice(("return_errors",)),
                "add_columns": take_flag,
                "partition": take_partition_fields,
                "validate": take_checks,
            },
        )
    )
    on_error, skip_file_errors = options.pop("on_error", ("abort", 1))
    checks = options.pop("validate", ())
    if checks and "validation_mode" in options:
        raise Malformed("VALIDATE is for rows that are loaded; leave VALIDATION_MODE out")
    if on_error == "abort" and any(check.kind == "max_error_rate" for check in checks):
        raise Malformed(
            "MAX_ERROR_RATE needs ON_ERROR=CONTINUE or SKIP_FILE: otherwise the first error ends "
            "the load"
        )
    return CopyIntoTable(
        table=table,
        columns=columns,
        source=source,
        query=query,
        staged_columns=staged_columns,
        checks=checks,
        on_error=on_error,
        skip_file_errors=skip_file_errors,
        return_errors=options.pop("validation_mode", None) is not None,
        partition_by=options.pop("partition", ()),
        **options,
    )


def _copy_into_stage(reader: TokenReader) -> CopyIntoStage:
    target = reader.take_path()
    reader.take_words("from")
    query = reader.take_query_in_parentheses()
    options = take_options(
        reader,
        {
            "file_format": take_file_format,
            "max_file_bytes": take_count,
            "overwrite": take_flag,
        },
    )
    return CopyIntoStage(target=target, query=query, **options)


def _create_pipe(reader: TokenReader, or_replace: bool) -> Statement:
    name = reader.take_name("a pipe")
    every_s, cron, on_new_files = None, "", False
    if reader.skip_words("schedule") and not reader.is_word("cron"):
        every_s = take_interval(reader)
    elif reader.skip_words("cron"):
        cron = reader.take_string("five fields of cron in single quotes, such as '0 3 * * *'")
        parse_cron(cron)
    elif reader.skip_words("on", "new", "files"):
        on_new_files = True
    else:
        reader.fail("SCHEDULE '1 minute', CRON '0 3 * * *' or ON NEW FILES")
    retries = RETRIES
    if reader.skip_words("retries"):
        reader.take_sign("=")
        retries = take_retries(reader)
    reader.take_words("as")
    copy_text = reader.rest()
    reader.take_words("copy", "into")
    copy = _copy_into_table(reader)
    if copy.force or copy.return_errors:
        raise Malformed(
            "a pipe loads each file once: FORCE=true and VALIDATION_MODE are for COPY INTO alone"
        )
    return CreatePipe(
        name=name,
        or_replace=or_replace,
        every_s=every_s,
        cron=cron,
        on_new_files=on_new_files,
        retries=retries,
        copy=copy,
        copy_text=copy_text,
    )


def _create_external_table(reader: TokenReader, or_replace: bool) -> Statement:
    name = reader.take_name("an external table")
    columns = take_column_specs(reader) if reader.is_sign("(") else ()
    reader.take_words("stored", "as")
    format_type = reader.take_choice(FORMATS)
    reader.take_words("location")
    location = reader.take_path()
    options = take_options(
        reader,
        {
            "partitioned": take_column_specs,
            "pattern": take_pattern,
            **FORMAT_OPTIONS,
            "compression": lambda r: r.take_choice(COMPRESSIONS),
        },
    )
    return CreateExternalTable(
        name=name,
        or_replace=or_replace,
        columns=columns,
        location=location,
        pattern=options.pop("pattern", ""),
        partitioned_by=options.pop("partitioned", ()),
        file_format=FileFormat(type=format_type, **options),  # type: ignore[arg-type]
    )


def _create_view(reader: TokenReader, or_replace: bool) -> Statement:
    name = reader.take_name("a view")
    reader.take_words("as")
    return CreateView(name=name, or_replace=or_replace, query=reader.take_query())


def _create_table(reader: TokenReader, _: bool) -> Statement:
    if_not_exists = reader.skip_words("if", "not", "exists")
    name = reader.take_name("a table")
    if if_not_exists or reader.is_sign("("):
        return take_create_table(reader, name, if_not_exists=if_not_exists)
    if not reader.skip_words("clone"):
        reader.fail("columns in parentheses, or CLONE")
    source = reader.take_table()
    if reader.skip_words("for", "system_version", "as", "of"):
        version: int | str
        if reader.is_integer():
            version = reader.take_integer("a snapshot id", least=0)
        else:
            version = reader.take_string("a snapshot id, or a tag in single quotes")
        return CloneTable(name=name, source=source, version=version)
    if reader.skip_words("for", "system_time", "as", "of"):
        reader.skip_words("timestamp")
        return CloneTable(name=name, source=source, time=_time(reader))
    return CloneTable(name=name, source=source)


def _time(reader: TokenReader) -> datetime:
    token = reader.token
    wanted = "a time such as '2026-09-21 14:00:00'"
    try:
        time = datetime.fromisoformat(reader.take_string(wanted))
    except ValueError:
        reader.fail(wanted, token)
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _alter_table(reader: TokenReader, _: bool) -> Statement:
    table = reader.take_table()
    if reader.is_word("add") or reader.is_word("alter"):
        return take_alter_table(reader, table)
    if reader.skip_words("set", "bloom"):
        is_none = reader.skip_words("none")
        return SetBloom(table=table, columns=() if is_none else take_columns(reader))
    if not reader.skip_words("cluster", "by"):
        reader.fail("ADD COLUMN, ALTER COLUMN, CLUSTER BY (a, b) or SET BLOOM (a, b)")
    if reader.skip_words("none"):
        return ClusterBy(table=table, columns=())
    return ClusterBy(table=table, columns=take_columns(reader))


def _show(kind: DefinitionKind | None, _: TokenReader, __: bool) -> Statement:
    return Show(kind=kind)


def _drop(kind: DefinitionKind, reader: TokenReader, _: bool) -> Statement:
    if_exists = reader.skip_words("if", "exists")
    name = reader.take_name(f"the {kind.replace('_', ' ')}")
    return Drop(kind=kind, name=name, if_exists=if_exists)


def _drop_table(reader: TokenReader, _: bool) -> Statement:
    if_exists = reader.skip_words("if", "exists")
    name = reader.take_table()
    purge = reader.skip_words("purge")
    return Drop(kind="table", name=name, if_exists=if_exists, purge=purge)


def _pause(kind: DefinitionKind, reader: TokenReader, _: bool) -> Statement:
    return Pause(kind=kind, name=reader.take_name(f"the {kind}"))


def _resume(kind: DefinitionKind, reader: TokenReader, _: bool) -> Statement:
    return Resume(kind=kind, name=reader.take_name(f"the {kind}"))


def _execute(reader: TokenReader, _: bool) -> Statement:
    return ExecutePipe(name=reader.take_name("the pipe"))


def _heads_of(kind: DefinitionKind, singular: str, plural: str) -> tuple[StatementHead, ...]:
    """SHOW and DROP of one kind."""
    return (
        StatementHead(
            words=("show", *plural.split()),
            parse=partial(_show, kind),
            example=f"SHOW {plural.upper()}",
        ),
        StatementHead(
            words=("drop", *singular.split()),
            parse=partial(_drop, kind),
            example=f"DROP {singular.upper()} name",
        ),
    )


def _running_heads_of(kind: DefinitionKind) -> tuple[StatementHead, ...]:
    """PAUSE and RESUME of one kind."""
    word = kind.upper()
    return (
        StatementHead(
            words=("pause", kind), parse=partial(_pause, kind), example=f"PAUSE {word} name"
        ),
        StatementHead(
            words=("resume", kind), parse=partial(_resume, kind), example=f"RESUME {word} name"
        ),
    )


HEADS: tuple[StatementHead, ...] = (
    StatementHead(
        words=("create", "stage"),
        parse=_create_stage,
        replaces=True,
        example="CREATE STAGE s URL='s3://bucket/folder/' CONNECTION=name",
    ),
    StatementHead(
        words=("create", "pipe"),
        parse=_create_pipe,
        replaces=True,
        example="CREATE PIPE p SCHEDULE '1 minute' AS COPY INTO t FROM @s",
    ),
    StatementHead(
        words=("create", "source"),
        parse=take_create_source,
        replaces=True,
        example="CREATE SOURCE s TYPE files FOLDER='/var/log/shop' INTO TOPIC 'shop_lines'",
    ),
    StatementHead(
        words=("create", "sink"),
        parse=take_create_sink,
        replaces=True,
        example="CREATE SINK s TYPE http CONNECTION=c FROM TOPIC 'orders'",
    ),
    StatementHead(
        words=("create", "external", "table"),
        parse=_create_external_table,
        replaces=True,
        example="CREATE EXTERNAL TABLE a STORED AS PARQUET LOCATION '@s/archive/'",
    ),
    StatementHead(
        words=("create", "view"),
        parse=_create_view,
        replaces=True,
        example="CREATE VIEW v AS SELECT …",
    ),
    StatementHead(
        words=("create", "table"),
        parse=_create_table,
        example="CREATE TABLE t (a BIGINT, b TEXT, PRIMARY KEY (a)); CREATE TABLE b CLONE a",
    ),
    StatementHead(
        words=("alter", "table"),
        parse=_alter_table,
        example="ALTER TABLE t ADD COLUMN c TEXT; ALTER TABLE t CLUSTER BY (a, b)",
    ),
    StatementHead(
        words=("insert", "into"),
        parse=lambda reader, _: take_insert(reader, is_upsert=False),
        example="INSERT INTO t (a, b) VALUES (1, 'x')",
    ),
    StatementHead(
        words=("upsert", "into"),
        parse=lambda reader, _: take_insert(reader, is_upsert=True),
        example="UPSERT INTO t SELECT …",
    ),
    StatementHead(
        words=("update",),
        parse=lambda reader, _: take_update(reader),
        example="UPDATE t SET b = 'y' WHERE a = 1",
    ),
    StatementHead(
        words=("delete", "from"),
        parse=lambda reader, _: take_delete(reader),
        example="DELETE FROM t WHERE a = 1",
    ),
    StatementHead(
        words=("show", "keyed", "tables"),
        parse=lambda _, __: ShowKeyedTables(),
        example="SHOW KEYED TABLES",
    ),
    StatementHead(words=("copy", "into"), parse=_copy, example="COPY INTO t FROM @s/2026/"),
    StatementHead(words=("list",), parse=_list, example="LIST @s/2026/"),
    StatementHead(
        words=("describe",), parse=_describe, before_path=True, example="DESCRIBE @s/2026/"
    ),
    StatementHead(words=("desc",), parse=_describe, before_path=True, example="DESC @s/2026/"),
    StatementHead(words=("validate",), parse=_validate, example="VALIDATE @s/2026/"),
    *_heads_of("stage", "stage", "stages"),
    *_heads_of("pipe", "pipe", "pipes"),
    *_heads_of("source", "source", "sources"),
    *_heads_of("sink", "sink", "sinks"),
    *_heads_of("external_table", "external table", "external tables"),
    *_heads_of("view", "view", "views"),
    StatementHead(
        words=("show", "definitions"), parse=partial(_show, None), example="SHOW DEFINITIONS"
    ),
    StatementHead(words=("drop", "table"), parse=_drop_table, example="DROP TABLE t"),
    *_running_heads_of("pipe"),
    *_running_heads_of("source"),
    *_running_heads_of("sink"),
    StatementHead(words=("execute", "pipe"), parse=_execute, example="EXECUTE PIPE p"),
)
