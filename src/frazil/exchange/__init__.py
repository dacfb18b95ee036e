"""exchange: telemetry out to files and in from files, as lines of OTLP/JSON.

    exporting.py   rows become lines: Choice, export_lines, row_count
    otlp_json.py   a request of protobuf as OTLP/JSON
    importing.py   Importer: lines are sent to a node
    reading.py     lines of files that may be compressed
    splitting.py   what a line holds, and how it is cut in two

A file has one export request per line, as the file exporter of collectors writes them, and as
their receivers read them. Rows come by SQL, and go by OTLP: no other way in or out is needed.
"""

from frazil.exchange.exporting import SIGNALS, Asked, Choice, Line, export_lines, row_count
from frazil.exchange.importing import Imported, Importer, Outcome
from frazil.exchange.otlp_json import json_of_request
from frazil.exchange.reading import STDIN, Place, Read, read_lines
from frazil.exchange.splitting import Request, request_of

__all__ = [
    "SIGNALS",
    "STDIN",
    "Asked",
    "Choice",
    "Imported",
    "Importer",
    "Line",
    "Outcome",
    "Place",
    "Read",
    "Request",
    "export_lines",
    "json_of_request",
    "read_lines",
    "request_of",
    "row_count",
]
