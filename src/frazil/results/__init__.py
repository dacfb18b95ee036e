"""asking: SQL in, rows out, wherever it is run; light enough for a command that only asks.

    arrow_result.py  rows that somebody else has worked out, as a result
    cancel.py        CancelToken: what a cancel and a time limit pull at
    html.py          rows as HTML
    json_csv.py      rows as JSON and CSV
    limits.py        Limits: what one query may take
    protocol.py      how answers are told from errors
    result.py        Result: rows as they come, as Arrow and as other things
    row_groups.py    rows in groups for a Parquet file
    running.py       RunningQuery: a query that is running
    statements.py    where one query ends and the next begins
    table_scan.py    TableScan: what a query reads of one table
    tokens.py        the words of SQL

A result belongs to one reader; a cancel_token may be pulled by anybody.
"""

from frazil.results.arrow_result import result_of, result_of_run
from frazil.results.cancel import CancelToken
from frazil.results.json_csv import columns_of, csv_head, csv_of, json_of, json_rows
from frazil.results.limits import Limits
from frazil.results.protocol import (
    ARROW,
    CUT_KEY,
    ERROR_KEY,
    PARQUET,
    PARTS_KEY,
    ErrorAnswer,
    ErrorReason,
)
from frazil.results.result import Result
from frazil.results.row_groups import GROUP_ROWS, row_groups
from frazil.results.running import RunningQuery
from frazil.results.statements import is_blank, split_statements
from frazil.results.table_scan import TableScan
from frazil.results.tokens import Token, place_of, tokens

__all__ = [
    "ARROW",
    "CUT_KEY",
    "ERROR_KEY",
    "GROUP_ROWS",
    "PARQUET",
    "PARTS_KEY",
    "CancelToken",
    "ErrorAnswer",
    "ErrorReason",
    "Limits",
    "Result",
    "RunningQuery",
    "TableScan",
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
