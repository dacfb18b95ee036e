"""The PySpark data source `frazil`: rows of a table with their places, as a batch or as a stream.

    spark.read.format("frazil").option("path", "data").option("table", "logs").load()
    spark.readStream.format("frazil").option("path", "data").option("table", "logs").load()

Positions of a stream are offsets of the log, so a batch that is done again after a restart has the
same rows, whether they come from the log or from the lake by then. Spark 4.1 asks such a source for
its newest position without any limit; here it moves on by so much at a time. And it asks anew where
a query begins whose first batch has not ended, so that each position tells this too.
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
from frazil.lake.pyspark.source_options import Position, SourceOptions, asked_of
from frazil.model import MiB

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from frazil.lake.config import LakeConfig
    from frazil.lake.read.offset_range import OffsetRangeReader, Part

BATCH_BYTES_MAX = 8 * MiB
"""Rows are handed to Spark in batches of about this size: it holds one of each task outside its
heap."""


class FrazilSource(DataSource):
    """What Spark makes of a name and options. Sent to its Python processes."""

    defaults: dict[str, str] = {}  # noqa: RUF012 # Spark makes the objects: this is for a subclass
    """Options that need not be given."""
    lake: LakeConfig | None = None

    @classmethod
    def name(cls) -> str:
        return "frazil"

    def schema(self) -> StructType:
        """All columns of the table, or those of the option `columns`."""
        from pyspark.sql.pandas.types import from_arrow_schema

        from frazil.model.arrow import TABLES

        asked = self._asked()
        schema = from_arrow_schema(TABLES[asked.table])
        if asked.columns is not None:
            return type(schema)([_field(schema, name) for name in asked.columns])
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        return BatchReader(self._asked(), self._columns(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return StreamReader(self._asked(), self._columns(schema))

    def _asked(self) -> SourceOptions:
        return asked_of({**self.defaults, **self.options}, self.lake)

    def _columns(self, schema: StructType) -> list[str]:
        """The wanted columns. A schema that somebody has given must be one of ours: Spark 4.1 does
        not compare what comes with it."""
        from pyspark.sql.pandas.types import from_arrow_schema

        from frazil.model.arrow import TABLES

        whole = from_arrow_schema(TABLES[self._asked().table])
        for field in schema:
            known = _field(whole, field.name).dataType
            if known.simpleString() != field.dataType.simpleString():
                raise Malformed(
                    f"column {field.name} is {known.simpleString()}, and not "
                    f"{field.dataType.simpleString()}; leave the schema away, or cast"
                )
        return [str(name) for name in schema.names]


def _field(schema: StructType, name: str) -> Any:
    if name not in schema.names:
        raise Malformed(f"there is no column {name!r}; there are {', '.join(schema.names)}")
    return schema[name]


@dataclass
class ReadTask(InputPartition):
    """What one task of Spark gets."""

    part: Part | None


class BatchReader(DataSourceReader):
    """All rows from one position up to another."""

    def __init__(self, asked: SourceOptions, columns: list[str]) -> None:
        self._asked = asked
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        history = open_history(self._asked)
        begin = self._asked.begin(history)
        parts = history.plan(begin, self._asked.end(history))
        return [ReadTask(part) for part in parts] or [ReadTask(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return rows_of(partition, self._columns)


class StreamReader(DataSourceStreamReader):
    """Rows as they come, some at a time. Of one query, in a process on the driver."""

    def __init__(self, asked: SourceOptions, columns: list[str]) -> None:
        self._asked = asked
        self._columns = columns
        self._history: OffsetRangeReader | None = None
        self._at: Position | None = None
        self._end: dict[tuple[str, int], int] | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Where this query began."""
        return self._position().begin_as_json()

    def latestOffset(self) -> dict[str, Any]:
        """How far the next batch goes."""
        history, asked, at = self._opened(), self._asked, self._position()
        begin = at.offsets
        ends = history.reach(begin, asked.bytes_max, asked.offsets_max)
        if asked.is_bounded and self._end is None:
            self._end = asked.end(history)
        if self._end is not None:
            ends = {
                place: max(begin.get(place, 0), min(end, self._end.get(place, 0)))
                for place, end in ends.items()
            }
        return Position(offsets=ends, since=at.since).as_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a batch. Spark also says by this where a query goes on after a restart."""
        begin, self._at = Position.of(start), Position.of(end)
        if start == end:
            return []
        return [ReadTask(part) for part in self._opened().plan(begin.offsets, self._at.offsets)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return rows_of(partition, self._columns)

    def _position(self) -> Position:
        """How far this query is. Spark tells where one goes on before it asks anything else; of
        whom it tells nothing is new, and begins where it shall."""
        if self._at is None:
            begin = self._asked.begin(self._opened())
            self._at = Position(offsets=begin, since=begin)
        return self._at

    def _opened(self) -> OffsetRangeReader:
        if self._history is None:
            self._history = open_history(self._asked)
        return self._history


def open_history(asked: SourceOptions) -> OffsetRangeReader:
    from frazil.lake.read.offset_range import OffsetRangeReader

    return OffsetRangeReader(asked.folder, asked.table, asked.lake)


def rows_of(partition: InputPartition, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """In a task: the rows of its part, in batches that Spark can hold."""
    from frazil.lake.append.task import split

    assert isinstance(partition, ReadTask)
    if partition.part is None:
        return
    for batch in partition.part.read():
        wanted = batch.select(columns)
        yield from split(wanted, wanted.nbytes, BATCH_BYTES_MAX)
