"""Rows of an earlier release are shown in the schema of today, or refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from frazil.hot.segment.schema_upgrade import conformed

SCHEMA = pa.schema(
    [
        pa.field("a", pa.int64(), nullable=False, metadata={"comment": "first"}),
        pa.field("b", pa.string()),
    ]
)


def test_rows_of_the_current_schema_are_returned_unchanged() -> None:
    batch = pa.RecordBatch.from_pylist([{"a": 1, "b": "x"}], schema=SCHEMA)
    assert conformed(batch, SCHEMA) is batch


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"a": pa.array([1, 2])}, [{"a": 1, "b": None}, {"a": 2, "b": None}]),
        ({"b": pa.array(["x"]), "c": pa.array([0]), "a": pa.array([1])}, [{"a": 1, "b": "x"}]),
        ({"a": pa.array([7], pa.int32()), "b": pa.array(["x"])}, [{"a": 7, "b": "x"}]),
        ({"a": pa.array([7]), "b": pa.array(["x"]).dictionary_encode()}, [{"a": 7, "b": "x"}]),
    ],
)
def test_old_rows_are_converted(
    columns: dict[str, pa.Array], expected: list[dict[str, object]]
) -> None:
    """New columns are null, old ones are dropped, narrow types are widened; metadata is current."""
    found = conformed(pa.record_batch(columns), SCHEMA)
    assert found.to_pylist() == expected
    assert found.schema.equals(SCHEMA, check_metadata=True)


@pytest.mark.parametrize(
    "columns",
    [
        {"b": pa.array(["x"])},
        {"a": pa.array([None], pa.int64()), "b": pa.array(["x"])},
        {"a": pa.array(["not a number"]), "b": pa.array(["x"])},
        {"a": pa.array([1.5]), "b": pa.array(["x"])},
    ],
)
def test_rows_that_do_not_fit_are_errors(columns: dict[str, pa.Array]) -> None:
    with pytest.raises(pa.ArrowInvalid):
        conformed(pa.record_batch(columns), SCHEMA)
