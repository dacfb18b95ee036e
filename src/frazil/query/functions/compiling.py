"""Compiled loops: numba, without the GIL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile at the first call, and keep the result on disk for the next process."""
    try:
        return cast(Function, njit(nogil=True, cache=True)(function))
    except RuntimeError:  # numba finds no folder to write to: every process compiles for itself
        return cast(Function, njit(nogil=True)(function))


def part(function: Function) -> Function:
    """Compile together with what calls it."""
    return cast(Function, njit(nogil=True)(function))
