"""Errors survive pickling between processes."""

from __future__ import annotations

import pickle

import pytest

from frazil import errors
from frazil.errors import Corrupt, FrazilError, Overloaded

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, FrazilError) and kind is not Corrupt
]


@pytest.mark.parametrize("kind", KINDS)
def test_errors_survive_pickling(kind: type[FrazilError]) -> None:
    """Type, message and attributes."""
    error = kind("so it is")
    if isinstance(error, Overloaded):
        error.retry_after_ms = 7
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (kind, "so it is", vars(error))


def test_corrupt_survives_pickling() -> None:
    error = Corrupt(path="a", position=5, expected="x", found="y", hint="look")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (Corrupt, str(error), vars(error))
