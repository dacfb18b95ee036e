"""The page docs/formats/arrow-segment.md says what the code does: its example is decoded here."""

from __future__ import annotations

import re
from pathlib import Path

from google_crc32c import value as crc32c

from frazil.hot.segment.arrow_segment import open_segment
from frazil.hot.segment.bloom import SALTS, hash_of
from frazil.hot.segment.column_stats import (
    SERVICES_BYTES_MAX,
    SERVICES_MAX,
    ColumnStats,
)
from frazil.hot.segment.layout import ArrowSegmentHeader
from tests.sim.disk import SimDisk

PAGE = (Path(__file__).parents[3] / "docs/formats/arrow-segment.md").read_text()


def test_the_example_in_the_docs_is_a_valid_segment() -> None:
    (example,) = re.findall(r"```hex\n(.*?)```", PAGE, re.DOTALL)
    disk = SimDisk()
    disk.open("example", "create").append([bytes.fromhex(example)])
    segment = open_segment(disk, "example")
    assert segment.header == ArrowSegmentHeader(
        identity=crc32c(b"otlp_logs/0"),
        begin_offset=1042,
        end_offset=1045,
        created_ms=1_700_000_000_000,
    )
    (stream,) = segment.streams
    assert stream.slot == "logs"
    (batch,) = stream.batches
    trace = "0af7651916cd43dd8448eb211c80319c"
    assert batch.to_pydict() == {"_offset": [1042, 1044], "trace_id": [trace, None]}
    assert stream.columns == {
        "_offset": ColumnStats("_offset", 0, 1042, 1044),
        "trace_id": ColumnStats("trace_id", 1, trace, trace),
    }
    assert stream.services is None
    assert stream.filters["trace_id"].may_hold(trace)
    assert not stream.filters["trace_id"].may_hold("another")
    (place,) = segment.manifest
    assert (place.stream, place.row_count, place.begin_offset, place.end_offset) == (
        0,
        2,
        1042,
        1045,
    )


def test_the_numbers_in_the_docs_match_the_code() -> None:
    assert " ".join(f"{salt:08x}" for salt in SALTS) in PAGE
    assert f"{hash_of('0af7651916cd43dd8448eb211c80319c'):016x}" in PAGE
    assert f"above {SERVICES_MAX} names or {SERVICES_BYTES_MAX // 1024} KiB" in PAGE
