"""`get_json_object`: one value out of JSON."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import Malformed
from frazil.query.functions.json_path import parse_path, values_at

DOCUMENT = (
    r'{"a": {"b": [10, {"c": "x\n\u00e4\ud83d\ude00"}], "": 1}, "a.b": true, "n": null, "t": "\/"}'
)


def value(text: str | None, path: str) -> str | None:
    found: str | None = values_at(pa.array([text], pa.string()), parse_path(path))[0].as_py()
    return found


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$.a.b[0]", "10"),
        ("$.a.b[1].c", "x\nä😀"),
        ("$.a.b[1]", r'{"c": "x\n\u00e4\ud83d\ude00"}'),
        ("$['a.b']", "true"),
        ('$["a.b"]', "true"),
        ("$['a']['b'][0]", "10"),
        ("$.a['']", "1"),
        ("$.t", "/"),
        ("$.n", None),
        ("$.n.x", None),
        ("$.a.b[2]", None),
        ("$.a.b.c", None),
        ("$.a[0]", None),
        ("$.missing", None),
        ("$", DOCUMENT),
    ],
)
def test_a_path_returns_its_value(path: str, expected: str | None) -> None:
    assert value(DOCUMENT, path) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing",
        "{",
        '{"a"',
        '{"a":',
        '{"a" 1}',
        "{'a': 1}",
        '{"a": }',
        '{"a": "x',
        "[1, 2",
        "{a:1}",
        None,
    ],
)
def test_invalid_json_is_null(text: str | None) -> None:
    assert value(text, "$.a") is None


def test_deep_nesting_is_skipped() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    assert value(f'{{"x": {deep}, "a": 7}}', "$.a") == "7"
    assert value("[" * 100_000, "$[0]") is None


def test_names_with_escapes_are_compared_decoded() -> None:
    """Of equal names the first counts."""
    assert value(r'{"\u0061\"": 1, "a": 2}', "$.a") == "2"
    assert value(r'{"\u0061": 1}', "$.a") == "1"
    assert value('{"a": 1, "a": 2}', "$.a") == "1"
    assert value(r'{"a": "\ud800x"}', "$.a") == "\ufffdx"


@pytest.mark.parametrize(
    ("path", "place"),
    [("$.", 2), ("$a", 2), ("$.a[", 4), ("$.a[-1]", 4), ("$.a[*]", 4), ("$..a", 2), ("$.a b", 4)],
)
def test_a_malformed_path_has_the_position(path: str, place: int) -> None:
    with pytest.raises(Malformed, match=f"at character {place}:"):
        parse_path(path)


def test_a_path_must_begin_with_a_dollar() -> None:
    with pytest.raises(Malformed, match=r"does not begin with \$"):
        parse_path("a.b")


NAMES = st.text(max_size=3)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)


@st.composite
def questions(draw: st.DrawFn) -> tuple[str, str, Any]:
    """A document, a path into it, and the value there."""
    document = inner = draw(JSON)
    path = "$"
    while isinstance(inner, dict | list) and inner and draw(st.booleans()):
        if isinstance(inner, list):
            place = draw(st.integers(0, len(inner) - 1))
            path, inner = f"{path}[{place}]", inner[place]
        else:
            name = draw(st.sampled_from([*inner]))
            if "'" in name:
                break
            path, inner = f"{path}['{name}']", inner[name]
    text = json.dumps(
        document, ensure_ascii=draw(st.booleans()), indent=draw(st.none() | st.just(2))
    )
    return text, path, inner


@given(st.lists(questions(), min_size=1, max_size=4))
def test_the_scanner_agrees_with_a_json_parser(asked: list[tuple[str, str, Any]]) -> None:
    column = pa.array([text for text, _, _ in asked])
    for row, (_, path, expected) in enumerate(asked):
        found = values_at(column, parse_path(path))[row].as_py()
        if expected is None:
            assert found is None
        elif isinstance(expected, str):
            assert found == expected
        else:
            assert json.loads(found) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r'{"a":"\u12€x"}', "u12€x"),
        (r'{"a":"\u€"}', "u€"),
        (r'{"a":"\u12"}', "u12"),
        (r'{"a":"\é\x"}', "éx"),
        (r'{"a":"\ud83d\u12€"}', "\N{REPLACEMENT CHARACTER}u12€"),
    ],
)
def test_an_escape_that_json_does_not_have_loses_its_backslash(text: str, expected: str) -> None:
    """And stays valid UTF-8, whatever follows it."""
    assert value(text, "$.a") == expected


@given(st.text("\\u1dcé€😀x", max_size=12))
def test_any_string_gives_valid_text(text: str) -> None:
    found = values_at(pa.array(['{"a":"' + text + '"}'], pa.string()), parse_path("$.a"))
    found.validate(full=True)
