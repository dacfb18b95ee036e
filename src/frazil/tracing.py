"""Spans of a node's own work. They cost nothing until `set_tracer` is called, once, by the program
that starts the node. Rooms that open spans do not know where they are exported.

A node may export its spans to itself. Those requests carry `OWN_HEADER`, also as a record header in
the log, and get no spans of their own; otherwise every export would cause the next one.
"""

from __future__ import annotations

from types import TracebackType
from typing import Protocol

OWN_HEADER = "x-frazil-own-traces"
"""HTTP header, and header of a log record, of a request that carries a node's own spans."""

Fact = str | bool | int | float


class Span(Protocol):
    """One unit of work. Entered with `with`, it is the parent of spans begun inside it."""

    def note(self, **facts: Fact) -> None:
        """Add attributes."""
        ...

    def drop(self) -> None:
        """Do not export this span."""
        ...

    def end(self) -> None:
        """End a span that was not entered. Call it once, from any thread."""
        ...

    def __enter__(self) -> Span: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Tracer(Protocol):
    """Creates and exports spans."""

    def span(self, name: str, parent: str | None, facts: dict[str, Fact]) -> Span:
        """Begin a span. `parent` is a `traceparent` header."""
        ...

    def ids(self) -> tuple[str, str] | None:
        """Return the trace id and span id current in this thread or task."""
        ...

    def flush(self, within_s: float) -> None:
        """Export all ended spans."""
        ...


class _Off:
    """A span that is not exported."""

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


def set_tracer(tracer: Tracer | None) -> None:
    """Send all further spans to `tracer`; None turns tracing off."""
    global _tracer
    _tracer = tracer


def is_on() -> bool:
    return _tracer is not None


def span(name: str, *, parent: str | None = None, **facts: Fact) -> Span:
    """Begin a span. Use it in `with`, or call `end`."""
    return OFF if _tracer is None else _tracer.span(name, parent, facts)


def ids() -> tuple[str, str] | None:
    """Return the current trace id and span id, or None outside a span."""
    return None if _tracer is None else _tracer.ids()


def flush(within_s: float) -> None:
    """Export all ended spans."""
    if _tracer is not None:
        _tracer.flush(within_s)
