"""asking: SQL in, rows out, wherever it is run; light enough for a command that only asks.

    statements.py  where one query ends and the next begins
    tokens.py      the words of SQL
    limits.py      Limits: what one query may take
    run.py         Run: a query that is running
    leash.py       Leash: what a cancel and a time limit pull at
    rows.py        Result: rows as they come, as Arrow and as other things
    parts.py       Part: what a query reads of one table
    groups.py      rows in groups for a Parquet file
    given.py       rows that somebody else has worked out, as a result
    rendering.py   rows as HTML
    written.py     rows as JSON and CSV
    wire.py        how answers are told from errors

A result belongs to one reader; a leash may be pulled by anybody.
"""

from frazil.asking.given import result_of, result_of_run
from frazil.asking.groups import GROUP_ROWS, row_groups
from frazil.asking.leash import Leash
from frazil.asking.limits import Limits
from frazil.asking.parts import Part
from frazil.asking.rows import Result
from frazil.asking.run import Run
from frazil.asking.statements import is_blank, split_statements
from frazil.asking.tokens import Token, place_of, tokens
from frazil.asking.wire import (
    ARROW,
    CUT_KEY,
    ERROR_KEY,
    PARQUET,
    PARTS_KEY,
    ErrorAnswer,
    ErrorReason,
)
from frazil.asking.written import columns_of, csv_head, csv_of, json_of, json_rows

__all__ = [
    "ARROW",
    "CUT_KEY",
    "ERROR_KEY",
    "GROUP_ROWS",
    "PARQUET",
    "PARTS_KEY",
    "ErrorAnswer",
    "ErrorReason",
    "Leash",
    "Limits",
    "Part",
    "Result",
    "Run",
    "Token",
    "columns_of",
    "csv_head",
    "csv_of",
    "is_blank",
    "json_of",
    "json_rows",
    "place_of",
    "result_of",
    "result_of_run",
    "row_groups",
    "split_statements",
    "tokens",
]
