"""Notifier: the queue and the thread of one receiver.

Whoever adds never waits. What cannot be sent is sent again, with growing pauses, until the queue is
full; then the oldest notifications are dropped, and counted.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from frazil.errors import Malformed, Unavailable
from frazil.metrics import Counter
from frazil.rules.notify.bodies import alertmanager_body, webhook_body
from frazil.rules.notify.notification import Notification
from frazil.rules.notify.post import address_of, post_json
from frazil.rules.report import NotifierReport

logger = logging.getLogger(__name__)

BATCH_MAX = 256
"""Notifications of one POST."""
PAUSE_S, PAUSE_MAX_S = 1.0, 60.0
"""Before the first repetition; it doubles."""
CLOSE_S = 2.0
"""How long a stop waits for what is being sent."""
ALERTMANAGER_PATH = "/api/v2/alerts"

SENT = Counter("frazil.rules.notifications.sent", "Notifications that a receiver has taken.")
FAILED = Counter("frazil.rules.notifications.failed", "Attempts to send that failed.")
DROPPED = Counter("frazil.rules.notifications.dropped", "Notifications given up, by reason.")

Kind = Literal["alertmanager", "webhook"]
Post = Callable[[str, bytes], None]


class Notifier:
    """One receiver. Any thread may add."""

    def __init__(self, kind: Kind, url: str, *, queue_max: int, post: Post = post_json) -> None:
        self._kind: Kind = kind
        is_api = kind == "alertmanager"
        self._url = f"{url.rstrip('/')}{ALERTMANAGER_PATH}" if is_api else url
        self._body = alertmanager_body if is_api else webhook_body
        self._post = post
        self._queue_max = queue_max
        self._queue: deque[Notification] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._sent = self._failed = self._dropped = 0
        self._last_error: str | None = None
        self._thread = threading.Thread(target=self._loop, name="frazil-notifier", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def add(self, notifications: Iterable[Notification]) -> None:
        """Queue what this receiver needs: an Alertmanager everything, a webhook changes only."""
        with self._changed:
            for each in notifications:
                if self._kind == "webhook" and not each.is_change:
                    continue
                if len(self._queue) >= self._queue_max:
                    self._queue.popleft()
                    self._drop(1, "queue full")
                self._queue.append(each)
            self._changed.notify_all()

    def report(self) -> NotifierReport:
        with self._changed:
            return NotifierReport(
                url=address_of(self._url),
                kind=self._kind,
                sent_count=self._sent,
                failed_count=self._failed,
                dropped_count=self._dropped,
                waiting_count=len(self._queue),
                last_error=self._last_error,
            )

    def close(self) -> None:
        """Stop. What waits is tried once more for a short time; alerts are sent again after the
        next start."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(CLOSE_S)

    def _loop(self) -> None:
        pause_s = PAUSE_S
        while batch := self._next_batch():
            if self._try(batch):
                pause_s = PAUSE_S
                continue
            with self._changed:
                room = self._queue_max - len(self._queue)
                self._drop(max(0, len(batch) - room), "queue full")
                self._queue.extendleft(reversed(batch[max(0, len(batch) - room) :]))
                if self._is_closed:
                    return
                self._changed.wait_for(lambda: self._is_closed, pause_s)
            pause_s = min(2 * pause_s, PAUSE_MAX_S)

    def _next_batch(self) -> list[Notification]:
        """Return what to send next; nothing once it is closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._queue) or self._is_closed)
            return [self._queue.popleft() for _ in range(min(BATCH_MAX, len(self._queue)))]

    def _try(self, batch: Sequence[Notification]) -> bool:
        """Send a batch. Returns whether it is done with, taken or refused."""
        try:
            self._post(self._url, self._body(batch))
        except (Unavailable, Malformed) as error:
            logger.warning("alerts could not be sent", extra={"reason": str(error)})
            FAILED.add(kind=self._kind)
            is_refused = isinstance(error, Malformed)
            with self._changed:
                self._failed += 1
                self._last_error = str(error)
                if is_refused:
                    self._drop(len(batch), "refused")
            return is_refused
        SENT.add(len(batch), kind=self._kind)
        with self._changed:
            self._sent += len(batch)
            self._last_error = None
        return True

    def _drop(self, count: int, reason: str) -> None:
        if count:
            self._dropped += count
            DROPPED.add(count, kind=self._kind, reason=reason)
