"""results: the rows of a query, wherever it runs. Imports no engine, so that a client starts fast.

    limits.py        Limits: timeout, memory and rows of one query
    tokens.py        tokens of a SQL text
    statements.py    split a text into statements
    parameters.py    values for $1 and $name
    running.py       RunningQuery (protocol): a query in progress
    cancel.py        CancelToken: cancels whatever a query is doing
    table_scan.py    TableScan: what a query reads of one table
    result.py        Result: rows as a stream, as Arrow, pandas, polars or Python values
    arrow_result.py  rows of an Arrow table as a Result
    json_csv.py      rows as JSON and CSV
    html.py          rows as an HTML table
    row_groups.py    rows in groups for a Parquet file
    write_token.py   WriteToken: what a write returns, and a query waits for
    given_rows.py    rows of a caller as Arrow
    protocol.py      media types, metadata keys and error bodies of the HTTP API

A result is read by one thread; a CancelToken may be used from any.
"""

from frazil.results.arrow_result import result_of, result_of_run
from frazil.results.cancel import CancelToken
from frazil.results.given_rows import GivenRows, arrow_rows
from frazil.results.json_csv import columns_of, csv_head, csv_of, json_objects, json_of, json_rows
from frazil.results.limits import Limits
from frazil.results.parameters import Parameters, bind_parameters
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
from frazil.results.tokens import Token, line_and_column, tokens
from frazil.results.write_token import WriteToken

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
    "GivenRows",
    "Limits",
    "Parameters",
    "Result",
    "RunningQuery",
    "TableScan",
    "Token",
    "WriteToken",
    "arrow_rows",
    "bind_parameters",
    "columns_of",
    "csv_head",
    "csv_of",
    "is_blank",
    "json_objects",
    "json_of",
    "json_rows",
    "line_and_column",
    "result_of",
    "result_of_run",
    "row_groups",
    "split_statements",
    "tokens",
]
