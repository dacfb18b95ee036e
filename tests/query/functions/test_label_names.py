"""label_value finds values by label, as a plain search does, in slices and among nulls as well."""

from __future__ import annotations

import pyarrow as pa
import pytest

from frazil.model.arrow import LOGS
from frazil.query.functions.label_names import label_name, values_by_label

MAPS = [
    [("http.route", "/a"), ("x", "1")],
    [],
    [("http_route", "/b")],
    [("http-route", "/c"), ("http.route", "/d")],
    [("route", "/e")],
    [("9lives", "yes"), ("http.route", ""), ("stück.zahl", "7"), ("", "empty")],
]


@pytest.mark.parametrize(
    "name", ["http_route", "x", "_9lives", "route", "st_ck_zahl", "st__ck_zahl", "none"]
)
@pytest.mark.parametrize(("begin", "length"), [(0, 6), (1, 4), (2, 1), (4, 2), (1, 0)])
def test_values(name: str, begin: int, length: int) -> None:
    column = pa.array(MAPS, LOGS.field("attributes").type).slice(begin, length)
    wanted = [
        next((value for key, value in one if label_name(key) == name), None)
        for one in MAPS[begin : begin + length]
    ]
    assert values_by_label(column, name).to_pylist() == wanted
