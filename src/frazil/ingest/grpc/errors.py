"""How gRPC calls are refused."""

from __future__ import annotations

import logging
from typing import NoReturn, TypeAlias

import grpc

from frazil.errors import FrazilError, Unavailable
from frazil.ingest.status_codes import codes_of, status_of

logger = logging.getLogger(__name__)

Context: TypeAlias = grpc.aio.ServicerContext

DETAILS_KEY = "grpc-status-details-bin"
"""Metadata key in which clients look for the `google.rpc.Status` of an error."""


async def refuse(context: Context, error: FrazilError) -> NoReturn:
    """Answer a call with an error. Raises gRPC's `AbortError`, which ends the call."""
    _, code = codes_of(error)
    details = ((DETAILS_KEY, status_of(error).SerializeToString()),)
    await context.abort(code, str(error), details)
    raise AssertionError("unreachable")


def refusal_of(error: Exception) -> FrazilError:
    """Return the error to answer a call with. An unexpected one is logged and hidden.

    The traceback is removed: it would keep every frame alive, with the bodies they hold, until the
    garbage collector finds the call.
    """
    if isinstance(error, FrazilError):
        error.__context__ = error.__cause__ = None
        return error.with_traceback(None)
    logger.error("a call failed unexpectedly", exc_info=error)
    return Unavailable("this node failed to serve the call and logged why; retry later")
