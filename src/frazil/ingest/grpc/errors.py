"""What is common to all gRPC calls: how one is refused."""

from __future__ import annotations

import logging
from typing import NoReturn, TypeAlias

import grpc

from frazil.errors import FrazilError, Unavailable
from frazil.ingest.status_codes import codes_of, status_of

logger = logging.getLogger(__name__)

Context: TypeAlias = grpc.aio.ServicerContext

DETAILS_KEY = "grpc-status-details-bin"
"""Where gRPC looks for the `google.rpc.Status` of a refusal."""


async def refuse(context: Context, error: FrazilError) -> NoReturn:
    """Answer a call with an error. Raises gRPC's `AbortError`, which ends the call."""
    _, code = codes_of(error)
    details = ((DETAILS_KEY, status_of(error).SerializeToString()),)
    await context.abort(code, str(error), details)
    raise AssertionError("unreachable")


def refusal_of(error: Exception) -> FrazilError:
    """What a caller is told of an error. One that nobody foresaw is ours, and is logged here.

    The error forgets where it was raised. It would keep every frame on the way alive, with the
    bodies they hold, for as long as gRPC keeps the call: until the garbage collector finds it.
    """
    if isinstance(error, FrazilError):
        error.__context__ = error.__cause__ = None
        return error.with_traceback(None)
    logger.error("a call failed unexpectedly", exc_info=error)
    return Unavailable("this node could not serve the call; its log says why; send again later")
