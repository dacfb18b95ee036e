"""The classes in git are what the generator makes of Kafka's jars."""

from __future__ import annotations

import pytest

from frazil.kafka.wire.api_table import API_TABLE
from tests.kafka.wire.definitions import API_KEYS, NO_JARS, missing_jars, notice
from tests.kafka.wire.generate import ROOT, WIRE, generated

pytestmark = pytest.mark.skipif(bool(missing_jars()), reason=NO_JARS)


def test_messages_are_generated_from_the_jars() -> None:
    """If this fails: `python -m tests.kafka.wire.generate`."""
    expected = generated()
    present = [WIRE / "api_table.py", *(WIRE / "messages").glob("*.py")]
    assert {str(path.relative_to(WIRE)) for path in present} == set(expected)
    for path, text in expected.items():
        assert (WIRE / path).read_text(encoding="utf-8") == text, path


def test_every_api_of_the_port_is_there() -> None:
    assert {key for key, *_ in API_TABLE} == API_KEYS


def test_the_notice_of_kafka_is_passed_on() -> None:
    """Apache's licence asks for it, without what concerns other parts of Kafka."""
    begin, _, _ = notice().partition("This distribution has")
    assert begin.strip() in (ROOT / "NOTICE").read_text(encoding="utf-8")
