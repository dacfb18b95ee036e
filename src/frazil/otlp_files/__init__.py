"""exchange: telemetry out to files and in from files, as lines of OTLP/JSON.

    exporter.py     rows become lines: Choice, export_lines, row_count
    importer.py     Importer: lines are sent to a node
    line_reader.py  lines of files that may be compressed
    otlp_json.py    a request of protobuf as OTLP/JSON
    split.py        what a line holds, and how it is cut in two

A file has one export request per line, as the file exporter of collectors writes them, and as
their receivers read them. Rows come by SQL, and go by OTLP: no other way in or out is needed.
"""

from frazil.otlp_files.exporter import (
    SIGNALS,
    ExportedLine,
    ExportFilter,
    SqlSource,
    export_lines,
    row_count,
)
from frazil.otlp_files.importer import Importer, ImportTotals, LineOutcome
from frazil.otlp_files.line_reader import STDIN, LinePosition, ReadLine, read_lines
from frazil.otlp_files.otlp_json import json_of_request
from frazil.otlp_files.split import JsonRequest, request_of

__all__ = [
    "SIGNALS",
    "STDIN",
    "ExportFilter",
    "ExportedLine",
    "ImportTotals",
    "Importer",
    "JsonRequest",
    "LineOutcome",
    "LinePosition",
    "ReadLine",
    "SqlSource",
    "export_lines",
    "json_of_request",
    "read_lines",
    "request_of",
    "row_count",
]
