"""definitions: statements that define and change things, and the files that keep definitions.

    statements.py    what each statement says, as dataclasses
    token_reader.py  TokenReader: the tokens of one statement
    options.py       options: NAME=value
    heads.py         how each kind of statement begins and is read
    parser.py        from a text to statements

A text is refused unless every statement of it is known. Queries inside statements are kept as
text: the read-only planner judges them.
"""

from frazil.definitions.parser import (
    ParsedStatement,
    is_statement,
    parse_statement,
    parse_statements,
)
from frazil.definitions.statements import (
    CloneTable,
    ClusterBy,
    ColumnSpec,
    CopyIntoStage,
    CopyIntoTable,
    CreateExternalTable,
    CreatePipe,
    CreateStage,
    CreateView,
    Definition,
    DefinitionKind,
    DescribeStage,
    Drop,
    FileCompression,
    FileFormat,
    FormatType,
    ListStage,
    OnError,
    PartitionField,
    Pause,
    Resume,
    Show,
    StagePath,
    Statement,
    ValidateStage,
)

__all__ = [
    "CloneTable",
    "ClusterBy",
    "ColumnSpec",
    "CopyIntoStage",
    "CopyIntoTable",
    "CreateExternalTable",
    "CreatePipe",
    "CreateStage",
    "CreateView",
    "Definition",
    "DefinitionKind",
    "DescribeStage",
    "Drop",
    "FileCompression",
    "FileFormat",
    "FormatType",
    "ListStage",
    "OnError",
    "ParsedStatement",
    "PartitionField",
    "Pause",
    "Resume",
    "Show",
    "StagePath",
    "Statement",
    "ValidateStage",
    "is_statement",
    "parse_statement",
    "parse_statements",
]
