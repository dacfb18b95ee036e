"""`VALIDATE (…)` of COPY INTO: conditions on the new rows, each as `LoadCheck`."""

from __future__ import annotations

from frazil.definitions.options import in_parentheses, take_columns
from frazil.definitions.statements import LoadCheck
from frazil.definitions.token_reader import TokenReader
from frazil.errors import Malformed, TooLarge

CHECKS_MAX = 50
_WANTED = (
    "NOT EMPTY, MAX_ERROR_RATE 0.05, UNIQUE (a), RANGE a BETWEEN 0 AND 9 or "
    "CHECK (SELECT … FROM new_rows …)"
)


def take_checks(reader: TokenReader) -> tuple[LoadCheck, ...]:
    """Read `(NOT EMPTY, UNIQUE (id), CHECK (SELECT …))`."""
    checks = in_parentheses(reader, _check)
    if len(checks) > CHECKS_MAX:
        raise TooLarge(f"VALIDATE may have {CHECKS_MAX} conditions")
    return checks


def _check(reader: TokenReader) -> LoadCheck:
    begin = reader.token
    check = _read(reader)
    return LoadCheck(**{**check, "text": reader.text_from(begin)})  # type: ignore[arg-type]


def _read(reader: TokenReader) -> dict[str, object]:
    if reader.skip_words("not", "empty"):
        return {"kind": "not_empty"}
    if reader.skip_words("max_error_rate"):
        reader.skip_sign("=")
        return {"kind": "max_error_rate", "rate": _rate(reader)}
    if reader.skip_words("unique"):
        return {"kind": "unique", "columns": take_columns(reader)}
    if reader.skip_words("range"):
        column = reader.take_column()
        reader.take_words("between")
        low = _literal(reader)
        reader.take_words("and")
        return {"kind": "range", "columns": (column,), "low": low, "high": _literal(reader)}
    if reader.skip_words("check"):
        return {"kind": "query", "query": reader.take_query_in_parentheses()}
    reader.fail(_WANTED)


def _rate(reader: TokenReader) -> float:
    token = reader.token
    text = reader.take_number("a share such as 0.05")
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= 1:
        raise Malformed(
            f"MAX_ERROR_RATE {text} is not a share of rows from 0 to 1, such as 0.05",
            begin=0 if token is None else token.begin,
        )
    return rate


def _literal(reader: TokenReader) -> str:
    """Read a number, a text in single quotes, or DATE or TIMESTAMP before one; return its SQL."""
    for word in ("date", "timestamp"):
        if reader.skip_words(word):
            return f"{word.upper()} {_quoted(reader.take_string())}"
    if reader.is_string():
        return _quoted(reader.take_string())
    sign = "-" if reader.skip_sign("-") else ""
    text = reader.take_number("a number, a text in single quotes, or DATE or TIMESTAMP before one")
    try:
        float(text)
    except ValueError:
        raise Malformed(f"{text} is not a number") from None
    return f"{sign}{text}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
