"""Freezing: when keyed tables are frozen, and what happens after a failure.

They are frozen with the rounds of the lake's thread. A failure delays only them: each is retried
later, and until then the log keeps their changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from frazil.errors import Fenced, FrazilError
from frazil.lake.append.progress import ReportActivity
from frazil.metrics import Counter
from frazil.model import NS_PER_MS, Clock, Rand

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from frazil.lake.append.appender import Appended
    from frazil.lake.keyed.freezer import Freezer, SetAside
    from frazil.lake.keyed.source import KeyedSource
    from frazil.lake.spark.jobs import TaskRunner
    from frazil.settings import LakeConfig

logger = logging.getLogger(__name__)

RETRY_MS = 1000
RETRY_MS_MAX = 60_000
HANDOFF = "handoff"
"""Folder below `lake/` for rows that are handed to tasks."""

FAILED = Counter("frazil.lake.freeze.failures", "Freezes that failed and will be retried.")


class Freezing:
    """Owned by the lake's thread; `attach` is called once, by any."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        config: LakeConfig,
        do: TaskRunner,
        data_folder: Path,
        *,
        clock: Clock,
        rand: Rand,
        report: ReportActivity,
        is_disk_short: Callable[[], bool],
        set_aside: SetAside,
    ) -> None:
        """`set_aside` commits records that are no changes as dead letters."""
        self._set_aside = set_aside
        self._fatal_errors: tuple[type[FrazilError], ...] = ()
        self._catalog = catalog
        self._config = config
        self._do = do
        self._folder = data_folder / "lake" / HANDOFF
        self._clock = clock
        self._rand = rand
        self._report = report
        self._is_disk_short = is_disk_short
        self._source: KeyedSource | None = None
        self._freezer: Freezer | None = None
        self._retry_ns = 0
        self._retry_ms = RETRY_MS
        self._is_fenced = False
        self.trouble: str | None = None
        """Why the last freeze failed, or None."""

    def attach(self, source: KeyedSource, fatal_errors: tuple[type[FrazilError], ...]) -> None:
        """Freeze these tables from now on. Fatal errors are raised, and not retried."""
        self._source, self._fatal_errors = source, fatal_errors

    def owns(self, table: str) -> bool:
        """Return whether only this process writes a table."""
        return self._freezer is not None and self._freezer.owns(table)

    @property
    def pending_bytes(self) -> int:
        """Estimated bytes of changes to freeze; 0 while a retry is not due."""
        if self._source is None or self._is_fenced or not self._is_retry_due():
            return 0
        try:
            if not self._source.tables():
                return 0
            return self._opened(self._source).pending_bytes
        except FrazilError as error:
            self._fail(error)
            return 0

    def flush(self) -> Iterator[list[Appended]]:
        """Freeze all that is durable now, and yield each commit."""
        if self._source is not None and self._source.tables():
            for done in self._opened(self._source).freeze_all():
                yield [done]
            self.trouble, self._retry_ms, self._retry_ns = None, RETRY_MS, 0

    def step(self) -> Iterator[list[Appended]]:
        """As `flush`, but a failure is noted, and retried later."""
        if self._is_fenced or not self._is_retry_due():
            return
        try:
            yield from self.flush()
        except Exception as error:  # noqa: BLE001 # top of loop: the log keeps everything
            self._fail(error)

    def _is_retry_due(self) -> bool:
        return self._clock.monotonic_ns() >= self._retry_ns

    def _opened(self, source: KeyedSource) -> Freezer:
        if self._freezer is None:
            from frazil.lake.keyed.freezer import Freezer

            self._freezer = Freezer(
                source,
                self._catalog(),
                self._config,
                self._do,
                self._folder,
                clock=self._clock,
                rand=self._rand,
                report=self._report,
                is_disk_short=self._is_disk_short,
                set_aside=self._set_aside,
            )
        return self._freezer

    def _fail(self, error: Exception) -> None:
        FAILED.add(reason=type(error).__name__)
        if isinstance(error, self._fatal_errors):
            raise error
        if self.trouble != str(error):
            is_known = isinstance(error, FrazilError)
            logger.error(
                "freeze failed",
                extra={"reason": str(error)},
                exc_info=None if is_known else error,
            )
        self.trouble = str(error)
        # Two lakes on the same tables would fence each other in turns.
        self._is_fenced = isinstance(error, Fenced)
        self._retry_ns = self._clock.monotonic_ns() + self._retry_ms * NS_PER_MS
        self._retry_ms = min(2 * self._retry_ms, RETRY_MS_MAX)
