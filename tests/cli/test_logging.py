"""What is said on standard error: an object a line for programs, words for people."""

from __future__ import annotations

import io
import json
import logging
import sys

from hypothesis import given
from hypothesis import strategies as st

from frazil.cli.logging import JsonFormatter, TextFormatter, formatter_for


def record(
    event: str = "gate closed", level: str = "WARNING", **facts: object
) -> logging.LogRecord:
    made = {"msg": event, "levelname": level, "name": "frazil.x", "created": 1.5, **facts}
    return logging.makeLogRecord(made)


def test_programs_get_json() -> None:
    """Time in UTC, level, logger, event, and the facts as they are."""
    assert json.loads(JsonFormatter().format(record(bytes=7, reason='"full"'))) == {
        "time": "1970-01-01T00:00:01.500Z",
        "level": "warning",
        "logger": "frazil.x",
        "event": "gate closed",
        "bytes": 7,
        "reason": '"full"',
    }


def test_an_exception_is_text_with_its_stack() -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        line = JsonFormatter().format(record(exc_info=sys.exc_info()))
    assert "\n" not in line
    said = json.loads(line)["exception"]
    assert "Traceback" in said
    assert "ValueError: broken" in said


@given(st.text(), st.dictionaries(st.text("abcd"), st.text()))
def test_every_record_is_one_line(event: str, facts: dict[str, str]) -> None:
    """Nobody who chooses a value can begin a line of his own, nor hide a fact."""
    made = record(event.replace("%", "%%"), **{f"x{name}": value for name, value in facts.items()})
    line = JsonFormatter().format(made)
    assert "\n" not in line
    said = json.loads(line)
    assert all(said[f"x{name}"] == value for name, value in facts.items())


def test_a_fact_does_not_hide_the_time() -> None:
    said = json.loads(JsonFormatter().format(record(time="later")))
    assert said["time"].startswith("1970")
    assert said["fact_time"] == "later"


def test_people_get_words() -> None:
    """Facts that are one word stand as they are; colours only where they are wanted."""
    plain = TextFormatter(has_colours=False).format(record(bytes=7, reason="no room\nhere"))
    assert plain.endswith('  warning: gate closed  bytes=7 reason="no room\\nhere"')
    assert "\x1b" not in plain
    assert "\x1b[33mwarning: gate closed" in TextFormatter(has_colours=True).format(record())


def test_a_terminal_gets_words_and_a_pipe_gets_json() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert isinstance(formatter_for(Terminal(), has_colours=False), TextFormatter)
    assert isinstance(formatter_for(io.StringIO(), has_colours=True), JsonFormatter)
