"""otlp_files: export telemetry to files and import it, as OTLP/JSON lines.

    export: rows -- SQL --> exporter --> otlp_json --> file
    import: file --> line_reader --> importer -- OTLP --> node

    exporter.py     ExportFilter, export_lines, row_count: rows to lines
    otlp_json.py    a protobuf request as OTLP/JSON
    line_reader.py  lines of plain or compressed files
    importer.py     Importer: sends lines to a node

A file has one export request per line, the format of the OpenTelemetry Collector's file exporter
and receiver.
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

__all__ = [
    "SIGNALS",
    "STDIN",
    "ExportFilter",
    "ExportedLine",
    "ImportTotals",
    "Importer",
    "LineOutcome",
    "LinePosition",
    "ReadLine",
    "SqlSource",
    "export_lines",
    "json_of_request",
    "read_lines",
    "row_count",
]
