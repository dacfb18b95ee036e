"""All errors of Frazil, sorted by what the caller should do.

    FrazilError
    ├── Rejected       the request is wrong: fix it, then send it again
    │   ├── Malformed        bytes that do not parse, a value out of range
    │   │   └── InvalidSetting  a setting, or several that contradict each other
    │   ├── TooLarge         above a named limit
    │   ├── Unauthenticated  no token, or an unknown one
    │   ├── Unknown          no such topic, partition, subscriber
    │   ├── OutOfRange       the offset is not in the log (any more, or yet)
    │   ├── Fenced           a newer epoch of this producer exists
    │   ├── SequenceGap      an earlier batch of this producer is missing
    │   ├── SequenceOld      repeats a batch older than the remembered ones
    │   └── PositionMismatch  a copy does not continue where the log is
    ├── Overloaded     healthy but full: retry after `retry_after_ms`
    ├── Unavailable    stopped, stopping, or a dependency is down: retry later
    │   └── Held             another process owns the data folder
    ├── Conflict       lost a race: read again, then retry
    ├── Unresolved     sent, outcome unknown: check before repeating
    └── Corrupt        bytes fail their check: stop and tell the operator

`Rejected`, `Overloaded` and `Unavailable` guarantee that nothing was stored.
"""

from __future__ import annotations

from collections.abc import Callable


class FrazilError(Exception):
    """Base of all errors that Frazil raises on purpose."""


class Rejected(FrazilError):
    """The request is wrong; the same request will never succeed."""


class Malformed(Rejected):
    """The bytes do not parse, or a value is out of range. For a typed text, `begin` and `end`
    give the position of the error in characters."""

    def __init__(self, message: str = "", *, begin: int = 0, end: int | None = None) -> None:
        super().__init__(message)
        self.begin = begin
        self.end = end


class InvalidSetting(Malformed):
    """A setting cannot work, or several contradict each other; `names` says which."""

    def __init__(self, message: str, *names: str) -> None:
        super().__init__(message)
        self.names = names


class TooLarge(Rejected):
    """A named limit is exceeded."""


class Unauthenticated(Rejected):
    """The client sent no token, or an unknown one."""


class Unknown(Rejected):
    """No topic, partition or subscriber of that name."""


class OutOfRange(Rejected):
    """The offset is below the start of the log or above its durable watermark."""


class Fenced(Rejected):
    """The producer's epoch is older than one the log has seen."""


class SequenceGap(Rejected):
    """The producer skipped a sequence: an earlier batch never arrived."""


class SequenceOld(Rejected):
    """The producer repeats a batch older than the remembered ones."""


class PositionMismatch(Rejected):
    """A step of a copy continues another position than the one the log remembers, which is
    `current`; None if it remembers none."""

    def __init__(self, message: str, *, current: bytes | None = None) -> None:
        super().__init__(message)
        self.current = current


class Overloaded(FrazilError):
    """Healthy but full. Nothing was stored; retry after `retry_after_ms`."""

    def __init__(self, message: str, *, retry_after_ms: int = 1000) -> None:
        super().__init__(message)
        self.retry_after_ms = retry_after_ms


class Unavailable(FrazilError):
    """Stopped, stopping, or a dependency cannot be reached. Nothing was stored."""


class Held(Unavailable):
    """Another running process owns the data folder."""


class Conflict(FrazilError):
    """Another writer was first: read the new state, then retry."""


class Unresolved(FrazilError):
    """The bytes were sent but there was no response: they may or may not be stored."""


class Corrupt(FrazilError):
    """Stored bytes fail their check. Has the path, position, expected and found values, and a
    hint."""

    def __init__(self, *, path: str, position: int, expected: str, found: str, hint: str) -> None:
        super().__init__(
            f"{path} is damaged at byte {position}: expected {expected}, found {found}. {hint}"
        )
        self.path = path
        self.position = position
        self.expected = expected
        self.found = found
        self.hint = hint

    def __reduce__(self) -> tuple[Callable[..., Corrupt], tuple[object, ...]]:
        """Pickle support, for tasks in other processes."""
        return _corrupt, (self.path, self.position, self.expected, self.found, self.hint)


def _corrupt(path: str, position: int, expected: str, found: str, hint: str) -> Corrupt:
    return Corrupt(path=path, position=position, expected=expected, found=found, hint=hint)


def reason_of(error: FrazilError) -> str:
    """Return the name of the error for metrics, such as `too_large`."""
    name = type(error).__name__
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
