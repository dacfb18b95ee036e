"""Makes answers fit. What is left out is said: rows by `is_cut`, parts of values by `shortened`.

A result has its content twice, as structured content and as text: clients hand one or the other to
a model. Both together, with what JSON adds to a text in a text, are below the limit.
"""

from __future__ import annotations

from typing import Any

import msgspec

from frazil.serve.mcp.answer import ToolAnswer

RESPONSE_BYTES_MAX = 40_000
"""Of a whole response."""
ENVELOPE_BYTES = 1_500
"""Of it, for what is around the content: at most one long id, and names of the protocol."""
ROW_BYTES_MAX = 12_000
"""A longer row is shortened."""
TEXT_LENGTHS = (2_000, 500, 120, 40)
ITEM_COUNTS = (200, 60, 20, 8)
"""Characters of a text, and items of a list or map, in each attempt to shorten a row."""
FACT_LENGTH_MAX = 300

_ENCODER = msgspec.json.Encoder()


def fitted(answer: ToolAnswer) -> dict[str, Any]:
    """Return the answer with as many rows as fit."""
    head = _head(answer)
    left = RESPONSE_BYTES_MAX - ENVELOPE_BYTES - _cost(_ENCODER.encode(head))
    rows: list[bytes] = []
    shortened = 0
    for row in answer.rows:
        fits = row if _cost(row) <= ROW_BYTES_MAX else shorter(row)
        left -= _cost(fits) + 2
        if left < 0:
            break
        shortened += fits is not row
        rows.append(fits)
    is_partial = len(rows) < len(answer.rows) or answer.total is None or answer.total > len(rows)
    is_cut = is_partial or answer.is_at_least or shortened > 0
    cursor = answer.cursors[len(rows) - 1] if is_partial and rows and answer.cursors else None
    return {
        **head,
        "shown": len(rows),
        "is_cut": is_cut,
        "shortened": shortened,
        "narrow": answer.narrow if is_cut else None,
        "after": cursor,
        answer.rows_name: [msgspec.Raw(row) for row in rows],
    }


def _head(answer: ToolAnswer) -> dict[str, Any]:
    """Everything but the rows, with fields of their largest size."""
    facts = msgspec.json.decode(_ENCODER.encode(dict(answer.facts)))
    return {
        **_shortened(facts, FACT_LENGTH_MAX, ITEM_COUNTS[0]),
        "total": answer.total,
        "is_total_exact": answer.total is not None and not answer.is_at_least,
        "shown": len(answer.rows),
        "is_cut": False,
        "shortened": len(answer.rows),
        "narrow": answer.narrow,
        "after": max(answer.cursors, key=len, default=None),
        "page": answer.page,
        answer.rows_name: [],
    }


def shorter(row: bytes) -> bytes:
    """Shorten the texts, lists and maps of a row until it is no longer too long."""
    value = msgspec.json.decode(row)
    for length, count in zip(TEXT_LENGTHS, ITEM_COUNTS, strict=True):
        attempt = _ENCODER.encode(_shortened(value, length, count))
        if _cost(attempt) <= ROW_BYTES_MAX:
            return attempt
    return _ENCODER.encode({"left_out": f"a row of {len(row)} bytes"})


def shortened_text(text: str, length: int) -> str:
    """Return a text of about this length that says how long it was."""
    return text if len(text) <= length else f"{text[:length]}… ({len(text)} characters)"


def _shortened(value: Any, length: int, count: int) -> Any:
    if isinstance(value, str):
        return shortened_text(value, length)
    if isinstance(value, list):
        items = [_shortened(item, length, count) for item in value[:count]]
        return items if len(value) <= count else [*items, f"… ({len(value)} items)"]
    if isinstance(value, dict):
        pairs = list(value.items())
        kept = {
            shortened_text(key, length): _shortened(item, length, count)
            for key, item in pairs[:count]
        }
        return kept if len(pairs) <= count else {**kept, "…": f"{len(pairs)} entries"}
    return value


def _cost(body: bytes) -> int:
    """Bytes of JSON in a response: once as it is, once as a text."""
    return len(body) + len(_ENCODER.encode(body.decode()))
