"""JSON of schemas: parsed within limits, printed without white space."""

from __future__ import annotations

import json
import math
from typing import Any

from frazil.errors import Malformed

DEPTH_MAX = 200
"""Levels of nesting in a schema: what walks one is recursive."""


def parse_json(text: str) -> Any:
    """Parse a document. `Malformed` if it is none, or nested too deeply."""
    try:
        document = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
        if "\\u" in text:
            print_json(document).encode()  # half of a pair of surrogates is no text
    except RecursionError:
        raise Malformed(f"it is nested more than {DEPTH_MAX} levels deep") from None
    except ValueError as error:
        raise Malformed(f"it is not JSON: {error}") from None
    _check_depth(document)
    return document


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is too large a number")
    return number


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def _check_depth(document: Any) -> None:
    level, depth = [document], 0
    while level:
        depth += 1
        if depth > DEPTH_MAX:
            raise Malformed(f"it is nested more than {DEPTH_MAX} levels deep")
        level = [
            child
            for value in level
            if isinstance(value, (dict, list))
            for child in (value.values() if isinstance(value, dict) else value)
        ]


def print_json(document: Any, *, sort_keys: bool = False) -> str:
    """Return a document without white space."""
    return json.dumps(
        document, separators=(",", ":"), ensure_ascii=False, sort_keys=sort_keys, allow_nan=False
    )
