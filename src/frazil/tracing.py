"""Spans of our own work. Free while nobody wants them; who does is set once, by whoever starts
the program. No room knows what becomes of its spans.

A node may send its spans to itself. Requests that carry them are marked, and are no work that is
worth a span: otherwise each would bring the next one.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Protocol

OWN_HEADER = "x-frazil-own-traces"
"""Marks requests that carry spans of a node."""

Fact = str | bool | int | float


class Span(Protocol):
    """Some work, from its beginning to its end. Entered, it is what further spans belong to."""

    def note(self, **facts: Fact) -> None:
        """Say more of it."""
        ...

    def drop(self) -> None:
        """Nothing worth knowing happened: nobody shall see it."""
        ...

    def end(self) -> None:
        """For one that is not entered. Once; from any thread."""
        ...

    def __enter__(self) -> Span: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Tracer(Protocol):
    """What becomes of spans."""

    def span(self, name: str, parent: str | None, facts: dict[str, Fact]) -> Span:
        """Begin one. `parent` is a `traceparent` of somebody else."""
        ...

    def ids(self) -> tuple[str, str] | None:
        """Trace and span that this thread or task is in."""
        ...

    def flush(self, within_s: float) -> None:
        """Send what has ended."""
        ...


class _Off:
    """A span that nobody wants."""

    __slots__ = ()

    def note(self, **_: Fact) -> None:
        return

    def drop(self) -> None:
        return

    def end(self) -> None:
        return

    def __enter__(self) -> _Off:
        return self

    def __exit__(self, *_: object) -> None:
        return


OFF: Span = _Off()
_tracer: Tracer | None = None
_own_lock = threading.Lock()
_own_count = 0


def set_tracer(tracer: Tracer | None) -> None:
    """From now on spans go there, or nowhere."""
    global _tracer
    _tracer = tracer


def is_on() -> bool:
    return _tracer is not None


def span(name: str, *, parent: str | None = None, **facts: Fact) -> Span:
    """Begin a span: use it in `with`, or end it yourself."""
    return OFF if _tracer is None else _tracer.span(name, parent, facts)


def ids() -> tuple[str, str] | None:
    """The trace and the span that we are in, if we are in one."""
    return None if _tracer is None else _tracer.ids()


def flush(within_s: float) -> None:
    """Send what has ended."""
    if _tracer is not None:
        _tracer.flush(within_s)


def note_own() -> None:
    """A request was stored that carries spans of a node."""
    global _own_count
    with _own_lock:
        _own_count += 1


def take_own() -> int:
    """How many of them came since the last call."""
    global _own_count
    with _own_lock:
        count, _own_count = _own_count, 0
        return count
