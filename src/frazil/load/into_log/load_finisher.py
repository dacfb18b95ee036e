"""LoadFinisher: a thread that finishes loads after the start of a node."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from frazil.errors import FrazilError, Unavailable
from frazil.results import CancelToken

logger = logging.getLogger(__name__)


class LoadFinisher:
    """Owned by one thread."""

    def __init__(self, finish: Callable[[CancelToken], None] | None) -> None:
        """Without `finish` there is nothing to do."""
        self._cancel_token = CancelToken()
        self._thread = None
        if finish is not None:
            self._thread = threading.Thread(
                target=self._run, args=(finish,), name="frazil-finish-loads"
            )
            self._thread.start()

    def _run(self, finish: Callable[[CancelToken], None]) -> None:
        try:
            finish(self._cancel_token)
        except FrazilError as error:
            logger.warning("a load is not finished yet", extra={"reason": str(error)})

    def close(self) -> None:
        """Interrupt it: the next start goes on."""
        self._cancel_token.cancel(Unavailable("the node is stopping"))
        if self._thread is not None:
            self._thread.join()
