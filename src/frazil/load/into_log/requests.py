"""Rows, or lines of OTLP/JSON, as requests that may be stored: checked, redacted and limited.

A request with a record that is rejected is split until the record is alone, so that an error has
its line, and the records around it are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from frazil.errors import Malformed, TooLarge
from frazil.load.formats.blocks import Block, RowError, row_error
from frazil.load.formats.lines import LineChunk
from frazil.load.into_log.log_columns import BadValue, LogColumns
from frazil.model import MiB, Signal, request_of

if TYPE_CHECKING:
    from frazil.ingest import FileIntake, LogValues
    from frazil.model import JsonRequest

REQUEST_ROWS = 2048
REQUEST_BYTES = MiB
"""About the size of a request with several rows."""
JSON_BYTES_MAX = 4 * MiB
"""Longer lines are split before they are converted, which takes many times their size."""


@dataclass(slots=True, kw_only=True)
class Requests:
    """Some rows of a file as requests, and rows that are none."""

    bodies: list[bytes] = field(default_factory=list)
    row_count: int = 0
    found: list[RowError] = field(default_factory=list)

    @property
    def errors(self) -> tuple[RowError, ...]:
        return tuple(self.found)


class RequestMaker:
    """Makes requests of one task."""

    def __init__(self, signal: Signal, intake: FileIntake) -> None:
        self._signal = signal
        self._intake = intake

    def of_rows(
        self,
        blocks: Iterator[Block],
        columns: LogColumns,
        default_ns: int,
        observed_ns: int,
        *,
        skips_empty: bool = False,
    ) -> Iterator[Requests]:
        """Yield the requests of rows. `line` of an error that is found here is the number of the
        row. `skips_empty`: a row whose body is an empty text is none."""
        row = 0
        for block in blocks:
            made = Requests(found=list(block.errors))
            for begin in range(0, block.row_count, REQUEST_ROWS):
                part = block.rows.slice(begin, REQUEST_ROWS)
                records: list[LogValues] = []
                numbers: list[int] = []
                for record in columns.records(part, default_ns, observed_ns):
                    row += 1
                    if isinstance(record, BadValue):
                        made.found.append(row_error(row, record.column, str(record)))
                    elif record.body != "" or not skips_empty:
                        records.append(record)
                        numbers.append(row)
                self._add_records(made, records, numbers)
                yield made
                made = Requests()
            if made.found:
                yield made

    def _add_records(
        self, made: Requests, records: Sequence[LogValues], numbers: Sequence[int]
    ) -> None:
        from frazil.ingest import log_request

        if not records:
            return
        is_alone = len(records) == 1
        try:
            body = log_request(records)
            if is_alone or len(body) <= REQUEST_BYTES:
                checked = self._intake.check(self._signal, body)
                if not checked.rejected_count:
                    made.bodies.append(checked.body)
                    made.row_count += len(records)
                    return
                reason = checked.message
            else:
                reason = ""
        except (Malformed, TooLarge) as error:
            reason = str(error)
        if is_alone:
            made.found.append(row_error(numbers[0], "", reason))
            return
        half = len(records) // 2
        self._add_records(made, records[:half], numbers[:half])
        self._add_records(made, records[half:], numbers[half:])

    def of_json(self, chunks: Iterator[LineChunk]) -> Iterator[Requests]:
        """Yield the requests of lines of OTLP/JSON."""
        for chunk in chunks:
            for number, line in enumerate(chunk.data.split(b"\n")[:-1], chunk.first_line):
                if line.strip():
                    made = Requests()
                    self._add_line(made, line, number)
                    yield made

    def _add_line(self, made: Requests, line: bytes, number: int) -> None:
        try:
            request = request_of(line)
        except Malformed as error:
            made.found.append(row_error(number, "", str(error)))
            return
        if request.signal != self._signal:
            table = Signal(request.signal).table
            reason = f"it has {request.signal}; COPY INTO {table} loads them"
            made.found.append(row_error(number, "", reason))
            return
        self._add_json(made, request, line, number)

    def _add_json(self, made: Requests, request: JsonRequest, text: bytes, number: int) -> None:
        halves = request.halves() if len(text) > JSON_BYTES_MAX else None
        if halves is None:
            try:
                checked = self._intake.check_json(self._signal, text)
            except TooLarge as error:
                halves = request.halves()
                if halves is None:
                    made.found.append(row_error(number, "", str(error)))
                    return
            except Malformed as error:
                made.found.append(row_error(number, "", str(error)))
                return
            else:
                made.found += [row_error(number, "", checked.message)] * checked.rejected_count
                if checked.record_count:
                    made.bodies.append(checked.body)
                    made.row_count += checked.record_count
                return
        for half in halves:
            self._add_json(made, half, msgspec.json.encode(half.content), number)
