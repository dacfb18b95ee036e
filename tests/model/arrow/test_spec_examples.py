"""Examples in the style of OpenTelemetry's specification: JSON to rows and back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from frazil.ingest.otlp.json import protobuf_of_json
from frazil.model import Signal
from frazil.model.arrow import decode, encode
from tests.fuzz.encode import rows_of, there_and_back
from tests.model.arrow.decoder.reference import CLASSES, differences, reference
from tests.model.arrow.requests import numbered
from tests.model.arrow.spec_examples import COMMON, EXAMPLES, Example

BIG_NUMBERS = frozenset(
    {
        "timeUnixNano",
        "observedTimeUnixNano",
        "startTimeUnixNano",
        "endTimeUnixNano",
        "intValue",
        "asInt",
        "count",
        "zeroCount",
        "bucketCounts",
    }
)
"""Fields of 64 bits, which are strings in JSON, and may be numbers."""
IDS = frozenset({"traceId", "spanId", "parentSpanId"})

examples = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)


def bytes_of(example: Example, spelling: Callable[[Any], Any] = lambda request: request) -> bytes:
    """The request as protobuf writes it, from its JSON."""
    text = json.dumps(spelling(example.request)).encode()
    return protobuf_of_json(Signal(example.signal), text)


@examples
def test_examples_give_the_expected_rows(example: Example) -> None:
    requests = numbered([bytes_of(example)])
    decoded = decode(example.signal, requests)
    assert differences(example.signal, decoded, *reference(example.signal, requests)) == []
    rows = decoded.batch.to_pylist()
    assert len(rows) == len(example.rows)
    for row, wanted in zip(rows, example.rows, strict=True):
        wanted = COMMON | wanted
        assert {name: row[name] for name in wanted} == wanted


def test_a_nan_in_json_is_a_nan_in_the_row() -> None:
    (metrics,) = (example for example in EXAMPLES if example.name == "metrics")
    assert math.isnan(rows_of("metrics", [bytes_of(metrics)])["sum"][-1].as_py())


@examples
def test_examples_round_trip(example: Example) -> None:
    """Nothing of them is lost; and what comes back is the same as protobuf's objects, too, but for
    the order of attributes."""
    body = bytes_of(example)
    assert there_and_back(example.signal, [body])[2] == []
    (again,) = encode(example.signal, rows_of(example.signal, [body]))
    one, other = (CLASSES[example.signal].FromString(each) for each in (body, again))
    _sort(one)
    _sort(other)
    assert one.SerializeToString() == other.SerializeToString()


def _sort(message: Any) -> None:
    """Attributes by their keys."""
    for field, value in message.ListFields():
        if field.message_type is not None:
            if field.message_type.name == "KeyValue":
                value.sort(key=lambda each: each.key)
            for each in value if field.is_repeated else [value]:
                _sort(each)


# The rules of OTLP's JSON.


def changed(tree: Any, change: Callable[[str, Any], Any], key: str = "") -> Any:
    """The same JSON with other leaves; a list's items are changed as its key says."""
    if isinstance(tree, dict):
        return {name: changed(value, change, name) for name, value in tree.items()}
    if isinstance(tree, list):
        return [changed(value, change, key) for value in tree]
    return change(key, tree)


def with_numbers(request: Any) -> Any:
    return changed(request, lambda key, leaf: int(leaf) if key in BIG_NUMBERS else leaf)


def with_strings(request: Any) -> Any:
    return changed(request, lambda key, leaf: str(leaf) if key in BIG_NUMBERS else leaf)


def with_small_ids(request: Any) -> Any:
    return changed(request, lambda key, leaf: leaf.lower() if key in IDS else leaf)


def with_capital_ids(request: Any) -> Any:
    return changed(request, lambda key, leaf: leaf.upper() if key in IDS else leaf)


def with_fields_nobody_knows(request: Any) -> Any:
    """In every object; they hold anything."""
    if isinstance(request, dict):
        known = {name: with_fields_nobody_knows(value) for name, value in request.items()}
        return {"fromTheFuture": [{"a": None}, 1e5], **known, "entity": {"id": "x"}}
    if isinstance(request, list):
        return [with_fields_nobody_knows(each) for each in request]
    return request


SPELLINGS = (
    with_numbers,
    with_strings,
    with_small_ids,
    with_capital_ids,
    with_fields_nobody_knows,
)


@examples
@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda spelling: spelling.__name__)
def test_alternative_json_spellings_give_the_same_request(
    example: Example, spelling: Callable[[Any], Any]
) -> None:
    """Numbers of 64 bits may be strings or numbers, hex has either case, and unknown fields do not
    matter."""
    assert bytes_of(example, spelling) == bytes_of(example)


def test_alternative_spellings_differ() -> None:
    for spelling in SPELLINGS:
        assert any(spelling(example.request) != example.request for example in EXAMPLES)
