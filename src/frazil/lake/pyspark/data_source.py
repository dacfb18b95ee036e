"""The PySpark data source `frazil`: rows of a table, as a batch or as a stream.

    spark.read.format("frazil").option("path", "data").option("table", "logs").load()
    spark.readStream.format("frazil").option("path", "data").option("table", "logs").load()

Positions of a stream are offsets of the log, so a batch that is repeated after a restart has the
same rows, whether they come from the log or the lake. Spark 4.1 does not pass a limit when it asks
a Python source for the latest offset, so the source limits each step itself. Spark also asks again
for the initial offset if the first batch has not finished, so each position contains it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from frazil.errors import Malformed
from frazil.lake.pyspark.source_options import Position, SourceOptions, parse_options
from frazil.model import MiB, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from frazil.lake.read.offset_range import OffsetRangeReader, Part
    from frazil.settings import LakeConfig

BATCH_BYTES_MAX = 8 * MiB
"""Approximate size of batches passed to Spark, which holds one per task outside its heap."""


class FrazilSource(DataSource):
    """Created by Spark from a name and options, and sent to its Python processes."""

    defaults: dict[str, str] = {}  # noqa: RUF012 # Spark creates instances; subclasses set this
    """Default options."""
    lake: LakeConfig | None = None

    @classmethod
    def name(cls) -> str:
        return "frazil"

    def schema(self) -> StructType:
        """Return all columns of the table, or those of the option `columns`."""
        from pyspark.sql.pandas.types import from_arrow_schema

        from frazil.model.arrow import TABLES

        options = self._parsed()
        schema = from_arrow_schema(TABLES[options.table])
        if options.columns is not None:
            return type(schema)([_field(schema, name) for name in options.columns])
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        return BatchReader(self._parsed(), self._columns(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return StreamReader(self._parsed(), self._columns(schema))

    def _parsed(self) -> SourceOptions:
        return parse_options({**self.defaults, **self.options}, self.lake)

    def _columns(self, schema: StructType) -> list[str]:
        """Return the column names of a schema, after checking its types: Spark 4.1 does not check
        the rows against a schema given by the user."""
        from pyspark.sql.pandas.types import from_arrow_schema

        from frazil.model.arrow import TABLES

        whole = from_arrow_schema(TABLES[self._parsed().table])
        for field in schema:
            known = _field(whole, field.name).dataType
            if known.simpleString() != field.dataType.simpleString():
                raise Malformed(
                    f"column {field.name} is {known.simpleString()}, not "
                    f"{field.dataType.simpleString()}; omit the schema, or cast"
                )
        return [str(name) for name in schema.names]


def _field(schema: StructType, name: str) -> Any:
    if name not in schema.names:
        raise Malformed(f"there is no column {name!r}; the columns are {', '.join(schema.names)}")
    return schema[name]


@dataclass
class ReadTask(InputPartition):
    """The input of one Spark task."""

    part: Part | None


class BatchReader(DataSourceReader):
    """Reads all rows from one position up to another."""

    def __init__(self, options: SourceOptions, columns: list[str]) -> None:
        self._options = options
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        reader = open_reader(self._options)
        begin = self._options.begin(reader)
        parts = reader.plan(begin, self._options.end(reader))
        return [ReadTask(part) for part in parts] or [ReadTask(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return rows_of(partition, self._columns)


class StreamReader(DataSourceStreamReader):
    """Reads rows as they arrive, in batches. Owned by one query, in a process on the driver."""

    def __init__(self, options: SourceOptions, columns: list[str]) -> None:
        self._options = options
        self._columns = columns
        self._reader: OffsetRangeReader | None = None
        self._at: Position | None = None
        self._end: dict[TopicPartition, int] | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Return where this query started."""
        return self._position().begin_as_json()

    def latestOffset(self) -> dict[str, Any]:
        """Return the end of the next batch."""
        reader, options, at = self._opened(), self._options, self._position()
        begin = at.offsets
        ends = reader.next_end(begin, options.bytes_max, options.offsets_max)
        if options.is_bounded and self._end is None:
            self._end = options.end(reader)
        if self._end is not None:
            ends = {
                place: max(begin.get(place, 0), min(end, self._end.get(place, 0)))
                for place, end in ends.items()
            }
        return Position(offsets=ends, since=at.since).as_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks of a batch. After a restart, this tells where the query continues."""
        begin, self._at = Position.of(start), Position.of(end)
        if start == end:
            return []
        return [ReadTask(part) for part in self._opened().plan(begin.offsets, self._at.offsets)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return rows_of(partition, self._columns)

    def _position(self) -> Position:
        """Return the position of this query. Spark calls `partitions` first on a restart; without
        that call the query is new and starts at `startingOffsets`."""
        if self._at is None:
            begin = self._options.begin(self._opened())
            self._at = Position(offsets=begin, since=begin)
        return self._at

    def _opened(self) -> OffsetRangeReader:
        if self._reader is None:
            self._reader = open_reader(self._options)
        return self._reader


def open_reader(options: SourceOptions) -> OffsetRangeReader:
    from frazil.lake.read.offset_range import OffsetRangeReader

    return OffsetRangeReader(options.folder, options.table, options.lake)


def rows_of(partition: InputPartition, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task in batches of limited size."""
    from frazil.lake.append.task import split

    assert isinstance(partition, ReadTask)
    if partition.part is None:
        return
    for batch in partition.part.read():
        rows = batch.select(columns)
        yield from split(rows, rows.nbytes, BATCH_BYTES_MAX)
