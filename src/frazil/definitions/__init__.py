"""definitions: statements that define and change things, and the files that keep definitions.

    statements.py    what each statement says, as dataclasses
    token_reader.py  TokenReader: the tokens of one statement
    options.py       options: NAME=value
    load_checks.py   conditions: VALIDATE (…)
    cron.py          CronSchedule: when five fields of cron are due
    table_grammar.py  keyed tables: CREATE, ALTER, INSERT, UPSERT, UPDATE, DELETE
    connector_grammar.py  sources and sinks: CREATE SOURCE, CREATE SINK
    heads.py         how each kind of statement begins and is read
    parser.py        from a text to statements
    store.py         Definitions: one file per defined thing
    audit.py         Audit: who sent which statement, and what became of it
    pipe_history.py  PipeHistory: runs of pipes, and how each ended
    changes.py       what `frazil apply` has to change
    executor.py      StatementExecutor: carries out a statement by the handler of its kind

A text is refused unless every statement of it is known. Queries inside statements are kept as
text: the read-only planner judges them.
"""

from frazil.definitions.audit import Audit, AuditEntry, masked
from frazil.definitions.changes import (
    DefinitionChange,
    DefinitionKey,
    changes_to,
    wanted_definitions,
)
from frazil.definitions.cron import CronSchedule, parse_cron
from frazil.definitions.executor import (
    StatementCall,
    StatementExecutor,
    StatementHandler,
    done,
    drop_definition,
)
from frazil.definitions.parser import (
    ParsedStatement,
    is_statement,
    parse_statement,
    parse_statements,
)
from frazil.definitions.pipe_history import (
    PipeHistory,
    PipeOutcome,
    PipeRun,
    PipeTrigger,
)
from frazil.definitions.statements import (
    KINDS,
    NEW_ROWS,
    STAGED_ROWS,
    AddColumn,
    CloneTable,
    ClusterBy,
    ColumnSpec,
    ConnectorOption,
    CopyIntoStage,
    CopyIntoTable,
    CreateExternalTable,
    CreatePipe,
    CreateSink,
    CreateSource,
    CreateStage,
    CreateTable,
    CreateView,
    Definition,
    DefinitionKind,
    DeleteRows,
    DescribeStage,
    Drop,
    ExecutePipe,
    FileCompression,
    FileFormat,
    FormatType,
    InsertRows,
    ListStage,
    LoadCheck,
    OnError,
    PartitionField,
    Pause,
    Resume,
    SetBloom,
    Show,
    ShowKeyedTables,
    StagePath,
    Statement,
    TableColumnSpec,
    UpdateRows,
    ValidateStage,
    WidenColumn,
    is_definition,
    is_reading,
    kind_of,
    words_of,
)
from frazil.definitions.store import Definitions, StoredDefinition

__all__ = [
    "KINDS",
    "NEW_ROWS",
    "STAGED_ROWS",
    "AddColumn",
    "Audit",
    "AuditEntry",
    "CloneTable",
    "ClusterBy",
    "ColumnSpec",
    "ConnectorOption",
    "CopyIntoStage",
    "CopyIntoTable",
    "CreateExternalTable",
    "CreatePipe",
    "CreateSink",
    "CreateSource",
    "CreateStage",
    "CreateTable",
    "CreateView",
    "CronSchedule",
    "Definition",
    "DefinitionChange",
    "DefinitionKey",
    "DefinitionKind",
    "Definitions",
    "DeleteRows",
    "DescribeStage",
    "Drop",
    "ExecutePipe",
    "FileCompression",
    "FileFormat",
    "FormatType",
    "InsertRows",
    "ListStage",
    "LoadCheck",
    "OnError",
    "ParsedStatement",
    "PartitionField",
    "Pause",
    "PipeHistory",
    "PipeOutcome",
    "PipeRun",
    "PipeTrigger",
    "Resume",
    "SetBloom",
    "Show",
    "ShowKeyedTables",
    "StagePath",
    "Statement",
    "StatementCall",
    "StatementExecutor",
    "StatementHandler",
    "StoredDefinition",
    "TableColumnSpec",
    "UpdateRows",
    "ValidateStage",
    "WidenColumn",
    "changes_to",
    "done",
    "drop_definition",
    "is_definition",
    "is_reading",
    "is_statement",
    "kind_of",
    "masked",
    "parse_cron",
    "parse_statement",
    "parse_statements",
    "wanted_definitions",
    "words_of",
]
