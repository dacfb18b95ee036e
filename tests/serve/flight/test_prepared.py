"""Handles of prepared statements expire, and are limited."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from frazil.errors import Overloaded, Unknown
from frazil.serve.flight.prepared import (
    HANDLES_MAX,
    IDLE_MS,
    PreparedStatement,
    PreparedStatements,
)
from tests.sim.clock import SimClock

NONE = pa.schema([])


def _statement() -> PreparedStatement:
    return PreparedStatement(text="SELECT 1", is_query=True, columns=NONE, parameters=NONE)


def test_a_handle_expires_when_it_is_idle() -> None:
    """Use keeps it open; closing it frees it at once."""
    clock = SimClock()
    kept = PreparedStatements(clock, random.Random(7))
    used, idle, closed = (kept.add(_statement()) for _ in range(3))
    assert kept.take(closed) is not None
    assert kept.take(closed) is None
    clock.sleep(IDLE_MS / 1000 * 0.6)
    assert kept.find(used).text == "SELECT 1"
    clock.sleep(IDLE_MS / 1000 * 0.6)
    kept.expire()
    assert kept.count == 1
    assert kept.find(used).text == "SELECT 1"
    for handle in (idle, closed):
        with pytest.raises(Unknown, match="prepare it again"):
            kept.find(handle)


def test_too_many_handles_are_refused_until_some_expire() -> None:
    clock = SimClock()
    kept = PreparedStatements(clock, random.Random(7))
    for _ in range(HANDLES_MAX):
        kept.add(_statement())
    with pytest.raises(Overloaded, match="close some"):
        kept.add(_statement())
    clock.sleep(IDLE_MS / 1000 + 1)
    kept.add(_statement())
    assert kept.count == 1
