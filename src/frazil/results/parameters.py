"""Parameters of a query: `$1` or `$name` in the text, replaced by values that cannot become SQL."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from frazil.errors import Malformed
from frazil.results.tokens import line_and_column, tokens

Value = None | bool | int | float | Decimal | str | bytes | datetime | date | timedelta
"""What a parameter may be."""
Parameters = Sequence[Value] | Mapping[str, Value]
"""Values of `$1`, `$2`, or of `$name`."""

INTEGER_MIN, INTEGER_MAX = -(2**63), 2**64 - 1


def bind_parameters(text: str, parameters: Parameters, engine: str | None = None) -> str:
    """Return a query with its parameters as literals. A `$` in a string, a quoted name or a
    comment is left alone. `Malformed` if one has no value, or a value is not used."""
    if engine is not None:
        raise Malformed(f"queries on {engine} take no parameters: its dialect quotes otherwise")
    if isinstance(parameters, str | bytes):
        raise Malformed("parameters are a list, for $1 and $2, or a dict, for $name; not a text")
    if isinstance(parameters, Mapping):
        values: dict[str, Value] = {str(name): value for name, value in parameters.items()}
    else:
        values = {str(number): value for number, value in enumerate(parameters, 1)}
    parts, at, used = [], 0, set()
    dollar = None
    for token in tokens(text):
        if dollar == token.begin and token.kind in ("word", "number"):
            if token.text not in values:
                known = ", ".join(f"${name}" for name in values) or "none"
                place = line_and_column(text, token.begin - 1)
                raise Malformed(f"${token.text} at {place} has no value; given: {known}")
            parts += [text[at : token.begin - 1], _literal(token.text, values[token.text])]
            at = token.end
            used.add(token.text)
        dollar = token.end if token.kind == "sign" and token.text == "$" else None
    if unused := values.keys() - used:
        names = ", ".join(f"${name}" for name in sorted(unused))
        raise Malformed(f"the query does not use the parameter {names}")
    return "".join([*parts, text[at:]])


def _literal(name: str, value: Value) -> str:
    """Return a literal in parentheses: a sign before a number must not become an operator."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() if INTEGER_MIN <= value <= INTEGER_MAX:
            return f"({value})"
        case float():
            text = repr(float(value)) if math.isfinite(value) else str(float(value))
            return f"CAST('{text}' AS DOUBLE)"
        case Decimal() if value.is_finite():
            places = max(0, -int(value.as_tuple().exponent))
            return f"CAST('{value:f}' AS DECIMAL(38, {places}))"
        case str():
            doubled = value.replace("'", "''")
            return f"'{doubled}'"
        case bytes():
            return f"X'{value.hex()}'"
        case datetime():
            if value.tzinfo is None:
                raise Malformed(f"${name} is a time without a time zone; give it one, such as UTC")
            return f"CAST('{value.astimezone(UTC).isoformat()}' AS TIMESTAMP WITH TIME ZONE)"
        case date():
            return f"DATE '{value.isoformat()}'"
        case timedelta():
            return f"INTERVAL '{value // timedelta(microseconds=1)} microseconds'"
    raise Malformed(
        f"${name} is {value!r:.100}, a {type(value).__name__}; use None, bool, int of 64 bits, "
        "float, Decimal, str, bytes, datetime, date or timedelta"
    )
