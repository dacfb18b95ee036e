"""Errors as Flight has them.

Of those that reach a client without a Python traceback, Flight has no code for a wrong request:
it is an error of the server, with a message that says what to do, and the kind beside it.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from pyarrow import flight

from frazil.errors import FrazilError, Overloaded, Unauthenticated, Unavailable, reason_of

logger = logging.getLogger(__name__)

FAILED = "internal error; see the log of the node"

T = TypeVar("T")


def flight_error(error: FrazilError) -> flight.FlightError:
    """Return an error with the code that fits best. Its kind is the extra information."""
    kinds: dict[type[FrazilError], type[flight.FlightError]] = {
        Overloaded: flight.FlightUnavailableError,
        Unavailable: flight.FlightUnavailableError,
        Unauthenticated: flight.FlightUnauthenticatedError,
    }
    found = next((kinds[kind] for kind in type(error).__mro__ if kind in kinds), None)
    return (found or flight.FlightServerError)(str(error), reason_of(error).encode())


@contextmanager
def flight_errors() -> Iterator[None]:
    """Raise what is raised inside as an error of Flight."""
    try:
        yield
    except flight.FlightError:
        raise
    except FrazilError as error:
        raise flight_error(error) from None
    except Exception:  # top of loop: one call must not break others
        logger.exception("a call of Flight SQL failed")
        raise flight.FlightInternalError(FAILED) from None


def with_flight_errors(call: Callable[..., T]) -> Callable[..., T]:
    """Make a method raise errors of Flight only."""

    @functools.wraps(call)
    def wrapper(*arguments: object, **named: object) -> T:
        with flight_errors():
            return call(*arguments, **named)

    return wrapper
