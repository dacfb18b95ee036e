"""WrittenRows: the outcome of a write, which has one append for each partition."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from frazil.errors import Conflict, Unresolved
from frazil.log import AppendResult
from frazil.tables.writer import Token


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """A durable write."""

    token: Token
    is_duplicate: bool
    """Whether all of it was there already: a repetition with the same digest."""


def join_appends(sent: Sequence[tuple[int, Future[AppendResult]]]) -> Future[WrittenRows]:
    """Return a future of the write: done when its appends, by partition, are. If only some have
    failed, it fails with `Conflict`, or with `Unresolved`: the write can be repeated."""
    joined: Future[WrittenRows] = Future()
    joined.set_running_or_notify_cancel()
    lock, left = threading.Lock(), len(sent)

    def note(_: Future[AppendResult]) -> None:
        nonlocal left
        with lock:
            left -= 1
            is_last = left == 0
        if is_last:
            _finish(joined, sent)

    if not sent:
        _finish(joined, sent)
    for _, future in sent:
        future.add_done_callback(note)
    return joined


def _finish(joined: Future[WrittenRows], sent: Sequence[tuple[int, Future[AppendResult]]]) -> None:
    failed = [error for _, future in sent if (error := future.exception()) is not None]
    done = {number: each.result() for number, each in sent if each.exception() is None}
    if not failed:
        token = {number: result.end_offset for number, result in done.items()}
        is_duplicate = bool(done) and all(result.is_duplicate for result in done.values())
        joined.set_result(WrittenRows(token, is_duplicate))
    elif not done:
        joined.set_exception(failed[0])
    else:
        kind = Conflict if isinstance(failed[0], Conflict) else Unresolved
        where = ", ".join(map(str, done))
        reason = f"{failed[0]}. Rows of partition {where} were written, others were not"
        joined.set_exception(kind(f"{reason}; repeat the write"))
