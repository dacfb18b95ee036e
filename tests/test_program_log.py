"""Log lines: JSON for programs, text for people."""

from __future__ import annotations

import io
import json
import logging
import sys

from hypothesis import given
from hypothesis import strategies as st

from frazil.program_log import JsonFormatter, TextFormatter, formatter_for


def record(
    event: str = "gate closed", level: str = "WARNING", **fields: object
) -> logging.LogRecord:
    attributes = {"msg": event, "levelname": level, "name": "frazil.x", "created": 1.5, **fields}
    return logging.makeLogRecord(attributes)


def test_json_has_time_level_logger_event_and_fields() -> None:
    assert json.loads(JsonFormatter().format(record(bytes=7, reason='"full"'))) == {
        "time": "1970-01-01T00:00:01.500Z",
        "level": "warning",
        "logger": "frazil.x",
        "event": "gate closed",
        "bytes": 7,
        "reason": '"full"',
    }


def test_json_has_the_exception_with_its_stack() -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        line = JsonFormatter().format(record(exc_info=sys.exc_info()))
    assert "\n" not in line
    parsed = json.loads(line)["exception"]
    assert "Traceback" in parsed
    assert "ValueError: broken" in parsed


@given(st.text(), st.dictionaries(st.text("abcd"), st.text()))
def test_every_record_is_one_line(event: str, fields: dict[str, str]) -> None:
    """No value can start a new line or hide a field."""
    attributes = record(
        event.replace("%", "%%"), **{f"x{name}": value for name, value in fields.items()}
    )
    line = JsonFormatter().format(attributes)
    assert "\n" not in line
    parsed = json.loads(line)
    assert all(parsed[f"x{name}"] == value for name, value in fields.items())


def test_a_field_cannot_hide_the_time() -> None:
    parsed = json.loads(JsonFormatter().format(record(time="later")))
    assert parsed["time"].startswith("1970")
    assert parsed["fact_time"] == "later"


def test_text_quotes_values_with_spaces() -> None:
    plain = TextFormatter(has_colors=False).format(record(bytes=7, reason="no room\nhere"))
    assert plain.endswith('  warning: gate closed  bytes=7 reason="no room\\nhere"')
    assert "\x1b" not in plain
    assert "\x1b[33mwarning: gate closed" in TextFormatter(has_colors=True).format(record())


def test_a_terminal_gets_text_and_a_pipe_gets_json() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert isinstance(formatter_for(Terminal(), has_colors=False), TextFormatter)
    assert isinstance(formatter_for(io.StringIO(), has_colors=True), JsonFormatter)
