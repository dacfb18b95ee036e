"""JSON Schema: what may follow what, rule by rule; what is no schema."""

from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.errors import Malformed
from frazil.registry.formats.parse import parse, unreadable
from frazil.registry.formats.parsed import NamedText

TEXT, NUMBER, WHOLE = {"type": "string"}, {"type": "number"}, {"type": "integer"}
CLOSED = {"additionalProperties": False}


def props(*names: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": dict.fromkeys(names, TEXT), **more}


def any_of(*parts: Any) -> dict[str, Any]:
    return {"anyOf": list(parts)}


RULES = [
    # (name, earlier, later, may the later follow, may the earlier follow)
    ("nothing changed", TEXT, TEXT, True, True),
    ("words about it", TEXT, TEXT | {"title": "t", "default": 1, "format": "date"}, True, True),
    ("any value", TEXT, {}, True, False),
    ("no value", False, TEXT, True, False),
    ("integers are numbers", WHOLE, NUMBER, True, False),
    ("another type", TEXT, NUMBER, False, False),
    ("a type more", TEXT, {"type": ["string", "null"]}, True, False),
    ("types in another order", {"type": ["null", "string"]}, {"type": ["string", "null"]}, 1, 1),
    ("longer", {"maxLength": 3}, {"maxLength": 4}, True, False),
    ("a limit less", {"maxLength": 3, **TEXT}, TEXT, True, False),
    ("shorter", {"minLength": 3}, {"minLength": 2}, True, False),
    ("larger", {"maximum": 3}, {"maximum": 4}, True, False),
    ("smaller", {"minimum": 3}, {"minimum": 2}, True, False),
    ("exclusive", {"exclusiveMaximum": 3}, {"exclusiveMaximum": 4}, True, False),
    ("multiples", {"multipleOf": 10}, {"multipleOf": 5}, True, False),
    ("a pattern less", {"pattern": "a", **TEXT}, TEXT, True, False),
    ("another pattern", {"pattern": "a"}, {"pattern": "b"}, False, False),
    ("choices", {"enum": ["a"]}, {"enum": ["a", "b"]}, True, False),
    ("true is not 1", {"enum": [1]}, {"enum": [True]}, False, False),
    ("a constant", {"const": 1}, {"enum": [1, 2]}, True, False),
    ("a name more in an open one", props("a"), props("a", "b"), False, True),
    ("one more in a closed one", props("a", **CLOSED), props("a", "b", **CLOSED), True, False),
    ("opened", props("a", **CLOSED), props("a"), True, False),
    ("required", props("a"), props("a", required=["a"]), False, True),
    (
        "covered by the others",
        props("a", additionalProperties=TEXT),
        props("a", "b", additionalProperties=TEXT),
        True,
        True,
    ),
    (
        "covered by a pattern",
        {"patternProperties": {"^x": TEXT}, **CLOSED},
        {"properties": {"x1": TEXT}, "patternProperties": {"^x": TEXT}, **CLOSED},
        True,
        True,
    ),
    ("properties", {"maxProperties": 3}, {"maxProperties": 4}, True, False),
    ("names", {"propertyNames": {"maxLength": 3}}, {"propertyNames": {"maxLength": 9}}, 1, 0),
    ("dependencies", {"dependencies": {"a": ["b", "c"]}}, {"dependencies": {"a": ["b"]}}, 1, 0),
    ("items", {"items": WHOLE}, {"items": NUMBER}, True, False),
    ("items at all", {"items": WHOLE}, {"type": "array"}, False, False),
    ("items or not", {"type": "array", "items": WHOLE}, {"type": "array"}, True, False),
    (
        "one item more",
        {"prefixItems": [TEXT], "items": False},
        {"prefixItems": [TEXT, TEXT], "items": False},
        True,
        False,
    ),
    ("in lists of draft 7", {"items": [TEXT]}, {"items": [{}]}, True, False),
    ("different items", {"uniqueItems": True, **TEXT}, TEXT, True, False),
    ("contained", {"contains": WHOLE}, {"contains": NUMBER}, True, False),
    ("one of more", any_of(TEXT, WHOLE), any_of(WHOLE, TEXT, {"type": "null"}), True, False),
    ("part by part", any_of(TEXT, WHOLE), any_of(TEXT, NUMBER), True, False),
    ("from one to some", TEXT, any_of(TEXT, WHOLE), True, False),
    ("one of", {"oneOf": [TEXT, WHOLE]}, any_of(TEXT, WHOLE), True, False),
    ("all of fewer", {"allOf": [TEXT, {"maxLength": 3}]}, {"allOf": [TEXT]}, True, False),
    ("not", {"not": {"maxLength": 3}}, {"not": {"maxLength": 2}}, True, False),
    ("conditions", {"if": TEXT, "then": {}}, {"if": WHOLE, "then": {}}, False, False),
    ("conditions gone", {"if": TEXT, "then": {"maxLength": 3}, **TEXT}, TEXT, True, False),
    (
        "a list of itself",
        {"properties": {"next": {"$ref": "#"}, "n": WHOLE}, **CLOSED},
        {"properties": {"next": {"$ref": "#"}, "n": NUMBER}, **CLOSED},
        True,
        False,
    ),
    (
        "moved to a definition",
        {"properties": {"a": TEXT}},
        {"properties": {"a": {"$ref": "#/$defs/t"}}, "$defs": {"t": TEXT}},
        True,
        True,
    ),
    (
        "moved by name",
        {"items": {"$ref": "item#/definitions/i"}, "$id": "http://x/y"},
        {"items": {"$ref": "#here"}, "$defs": {"t": {"$anchor": "here", **WHOLE}}},
        True,
        True,
    ),
    (
        "not evaluated",
        {"allOf": [props("a"), {}], "unevaluatedProperties": False},
        {"allOf": [props("a"), {"minProperties": 0}], "unevaluatedProperties": True},
        False,
        False,
    ),
]
ITEM = NamedText("item", json.dumps({"definitions": {"i": WHOLE}}))
INVALID = [
    *("{", "[]", '"x"', "1e999", '{"type":"text"}', '{"type":[]}', '{"required":["a","a"]}'),
    *('{"properties":[]}', '{"$ref":"#/nothing"}', '{"$ref":"elsewhere.json"}', '{"minLength":-1}'),
    *('{"items":{"pattern":5}}', '{"allOf":{}}', '{"$ref":"#"}', '{"multipleOf":0}', '"\\ud800"'),
    '{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}',
    "[" * 300 + "]" * 300,
]


@pytest.mark.parametrize(
    ("earlier", "later", "forth", "back"), [rule[1:] for rule in RULES], ids=[r[0] for r in RULES]
)
def test_rules(earlier: Any, later: Any, forth: bool, back: bool) -> None:
    """In both directions. The texts do not change when they are parsed again."""
    one, other = (parse("JSON", json.dumps(each), [ITEM], is_new=True) for each in (earlier, later))
    assert (not unreadable(other, one), not unreadable(one, other)) == (forth, back), (
        unreadable(other, one),
        unreadable(one, other),
    )
    assert parse("JSON", one.text, [ITEM], is_new=True).text == one.text
    assert json.loads(other.normalized) == later


@pytest.mark.parametrize("text", INVALID)
def test_what_is_no_schema(text: str) -> None:
    with pytest.raises(Malformed):
        parse("JSON", text, [], is_new=True)
