"""SQL of a rule: `$time` is the time of the evaluation."""

from __future__ import annotations

from datetime import UTC, datetime

from frazil.errors import Malformed
from frazil.results import bind_parameters, tokens

TIME = "time"


def bound_sql(text: str, at_ms: int) -> str:
    """Return a query as of a time. `Malformed` if it has another parameter."""
    values = {TIME: datetime.fromtimestamp(at_ms / 1000, UTC)} if _uses_time(text) else {}
    try:
        return bind_parameters(text, values)
    except Malformed as error:
        raise Malformed(f"{error}; a rule has only ${TIME}, the time of its evaluation") from None


def _uses_time(text: str) -> bool:
    dollar = None
    for token in tokens(text):
        if dollar == token.begin and token.text == TIME:
            return True
        dollar = token.end if token.kind == "sign" and token.text == "$" else None
    return False
