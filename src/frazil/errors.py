"""The whole error tree on one screen, sorted by what the caller should do.

    FrazilError
    ├── Rejected       the request is wrong: fix it, then send it again
    │   ├── Malformed      bytes that do not parse, a value outside its range
    │   │   └── InvalidSetting  a setting, or several that contradict each other
    │   ├── TooLarge       over a named limit
    │   ├── Unauthenticated  no token, or one that is not ours
    │   ├── Unknown        no such topic, partition, subscriber, producer
    │   ├── OutOfRange     the offset is not in the log (any more, or yet)
    │   ├── Fenced         a newer epoch of this producer has taken over
    │   ├── SequenceGap    an earlier batch of this producer is missing
    │   └── SequenceOld    repeats a batch older than the ones remembered
    ├── Overloaded     healthy but full: come back after `retry_after_ms`
    ├── Unavailable    stopped, stopping, or a neighbour is down: retry elsewhere or later
    │   └── Held           the data folder belongs to another process
    ├── Conflict       lost a race: read again, then retry
    ├── Unresolved     written, outcome unknown: look before you repeat
    └── Corrupt        bytes fail their check: stop and tell the operator

`Rejected`, `Overloaded` and `Unavailable` promise that nothing was stored.
"""

from __future__ import annotations

from collections.abc import Callable


class FrazilError(Exception):
    """Anything Frazil raises on purpose."""


class Rejected(FrazilError):
    """The request is wrong; the same request will never work."""


class Malformed(Rejected):
    """The bytes do not parse, or a value is outside its range. Of a text that somebody types it
    may be known where: from `begin` to before `end`, in characters."""

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
    """The caller did not prove who he is: no token, or one that is not known here."""


class Unknown(Rejected):
    """A topic, partition, subscriber or producer of that name does not exist."""


class OutOfRange(Rejected):
    """The offset is below the start of the log or above its durable watermark."""


class Fenced(Rejected):
    """The producer's epoch is older than one the log has already seen."""


class SequenceGap(Rejected):
    """The producer skipped a sequence: an earlier batch never arrived."""


class SequenceOld(Rejected):
    """The producer repeats a batch that is older than the remembered ones."""


class Overloaded(FrazilError):
    """Healthy but full. Nothing was stored; come back after `retry_after_ms`."""

    def __init__(self, message: str, *, retry_after_ms: int = 1000) -> None:
        super().__init__(message)
        self.retry_after_ms = retry_after_ms


class Unavailable(FrazilError):
    """This part is stopped, stopping or cannot reach a neighbour. Nothing was stored."""


class Held(Unavailable):
    """Another living process owns the data folder."""


class Conflict(FrazilError):
    """Somebody else was first: read the new state, then decide again."""


class Unresolved(FrazilError):
    """The bytes left our hands but no answer came: they may or may not be stored."""


class Corrupt(FrazilError):
    """Stored bytes fail their check. Carries where, what was expected, and what to do."""

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
        """So that a task in another process can tell of it."""
        return _corrupt, (self.path, self.position, self.expected, self.found, self.hint)


def _corrupt(path: str, position: int, expected: str, found: str, hint: str) -> Corrupt:
    return Corrupt(path=path, position=position, expected=expected, found=found, hint=hint)


def reason_of(error: FrazilError) -> str:
    """One word for metrics: the error's name, as in `too_large`."""
    name = type(error).__name__
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
