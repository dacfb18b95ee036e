"""PipeScheduler: the thread that starts pipes when they are due.

    one thread           asks the board what is due, and starts a thread per run
    RUNS_MAX threads     look for new files, or run a COPY INTO
    threads of statements  change pipes, or run one at once: under the same lock

A pipe is in `_active` while a thread has it; nothing else starts it then.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from frazil.definitions import CreatePipe, PipeOutcome, PipeRun
from frazil.errors import Conflict, FrazilError, Overloaded, Unavailable
from frazil.load.pipes.board import PipeBoard, PipeStatus, RunResult
from frazil.model import NS_PER_MS, Clock
from frazil.results import CancelToken

logger = logging.getLogger(__name__)

RUNS_MAX = 2
"""Pipes that run at the same time: statements have the other half of the loads."""
WAIT_MAX_S = 15.0
"""The wall clock may be set meanwhile."""
STORE_RETRY_S = 5.0
"""Pause after a run that could not be stored, such as on a full disk."""
STOP_S = 60.0
"""How long a statement waits for a run that it has cancelled."""
CLOSE_S = 10.0
"""How long a stop waits for runs; what is left is interrupted, as by a crash."""
INTERNAL = "internal error; see the log of the node"


class PipeWork(Protocol):
    """Runs pipes. `PipeLoads` implements it."""

    def unloaded(self, pipe: CreatePipe) -> str | None:
        """Return a digest of the files that were not loaded; None if there are none."""

    def run(self, pipe: CreatePipe, cancel_token: CancelToken) -> RunResult:
        """Load all files that were not loaded."""


class _Activity:
    """A pipe that a thread has: how to cancel it, and what it then counts as."""

    def __init__(self, cancel_token: CancelToken) -> None:
        self.cancel_token = cancel_token
        self.outcome: PipeOutcome | None = None


class PipeScheduler:
    """Any thread may call it, between `start` and `close`."""

    def __init__(
        self, board: PipeBoard, work: PipeWork, clock: Clock, *, is_scheduling: bool = True
    ) -> None:
        """Without `is_scheduling`, pipes run only by statements."""
        self._board = board
        self._work = work
        self._clock = clock
        self._is_scheduling = is_scheduling
        self._changed = threading.Condition()
        self._active: dict[str, _Activity] = {}
        self._held: set[str] = set()
        """Pipes that are being changed: they are not started."""
        self._is_closed = False
        self._thread = threading.Thread(target=self._loop, name="frazil-pipes")

    def start(self) -> None:
        if self._is_scheduling:
            self._thread.start()

    def close(self) -> None:
        """Start nothing more, and interrupt what runs."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            active = list(self._active.values())
        for activity in active:
            _cancel(activity, "interrupted", Unavailable("the node is stopping"))
        with self._changed:
            self._changed.wait_for(lambda: not self._active, CLOSE_S)
        if self._thread.is_alive():
            self._thread.join()

    def statuses(self) -> list[PipeStatus]:
        """Return all pipes, by name."""
        return self._board.statuses()

    @property
    def is_scheduling(self) -> bool:
        return self._is_scheduling

    def put(self, pipe: CreatePipe, store: Callable[[], object]) -> None:
        """Create or replace a pipe; `store` makes that durable. A run of the old one is cancelled
        first."""
        with self._stopped(pipe.name, "it is replaced"):
            store()
            self._board.put(pipe)

    def drop(self, name: str, store: Callable[[], object]) -> None:
        """Drop a pipe; `store` makes that durable. A run is cancelled first."""
        with self._stopped(name, "it is dropped"):
            store()
            self._board.drop(name)

    def pause(self, name: str) -> None:
        """Start no more runs; one that runs goes on."""
        with self._changed:
            self._board.pause(name)

    def resume(self, name: str) -> None:
        with self._changed:
            self._board.resume(name)
            self._changed.notify_all()

    def execute(self, name: str, cancel_token: CancelToken) -> PipeRun:
        """Run a pipe on this thread, paused or not, and return the run. Raises its error."""
        with self._changed:
            self._board.state(name)
            if name in self._active or name in self._held:
                raise Conflict(f"pipe {name} is running; wait until it has ended")
            self._check_room()
            run = self._board.begin(name, is_statement=True)
            activity = self._active[name] = _Activity(cancel_token)
            pipe = self._board.pipe(name)
        errors: list[FrazilError] = []
        run = self._carry_out(pipe, run, activity, errors.append)
        for error in errors:
            raise error
        return run

    def _check_room(self) -> None:
        if self._is_closed:
            raise Unavailable("the node is stopping")
        if len(self._active) >= RUNS_MAX:
            raise Overloaded(f"{RUNS_MAX} pipes are running, which is the limit; retry later")

    @contextmanager
    def _stopped(self, name: str, why: str) -> Iterator[None]:
        """Hold a pipe that is not running, cancelled if it was. `Unavailable` if it does not
        end."""
        with self._changed:
            if not self._changed.wait_for(lambda: name not in self._held, STOP_S):
                raise Unavailable(f"pipe {name} is being changed; retry in a moment")
            self._held.add(name)
            activity = self._active.get(name)
        try:
            if activity is not None:
                _cancel(activity, "cancelled", Unavailable(f"pipe {name} was ended: {why}"))
            with self._changed:
                if not self._changed.wait_for(lambda: name not in self._active, STOP_S):
                    raise Unavailable(f"pipe {name} does not end; retry in a moment")
                yield
        finally:
            with self._changed:
                self._held.discard(name)
                self._changed.notify_all()

    def _loop(self) -> None:
        with self._changed:
            while not self._is_closed:
                try:
                    self._start_due()
                except Unavailable as error:
                    logger.warning("pipes are not started", extra={"reason": str(error)})
                    self._changed.wait(STORE_RETRY_S)
                    continue
                self._changed.wait(self._wait_s())

    def _wait_s(self) -> float:
        next_ms = self._board.next_ms()
        if next_ms is None or len(self._active) >= RUNS_MAX:
            return WAIT_MAX_S
        left_s = (next_ms - self._clock.wall_ms()) / 1000
        # A pipe that is due and active or held is looked at when that ends, which notifies.
        return WAIT_MAX_S if left_s <= 0 else min(WAIT_MAX_S, left_s)

    def _start_due(self) -> None:
        """Start what is due and for which there is room. `Unavailable` if a run cannot be
        stored."""
        for name in self._board.due():
            if len(self._active) >= RUNS_MAX:
                return
            if name in self._active or name in self._held:
                continue
            pipe = self._board.pipe(name)
            run = None if pipe.on_new_files else self._board.begin(name)
            activity = self._active[name] = _Activity(CancelToken())
            threading.Thread(
                target=self._poll if run is None else self._carry_out,
                args=(pipe, activity) if run is None else (pipe, run, activity),
                name=f"frazil-pipe-{name}",
                daemon=True,  # a run that does not end must not keep the process
            ).start()

    def _poll(self, pipe: CreatePipe, activity: _Activity) -> None:
        """Look for new files, and load them if there are any."""
        seen: str | None = ""
        failure: RunResult | None = None
        try:
            seen = self._work.unloaded(pipe)
        except FrazilError as error:
            failure = RunResult(outcome="failed", message=str(error))
        except Exception:  # top of loop: the next poll may succeed
            logger.exception("a pipe could not look for files", extra={"pipe": pipe.name})
            failure = RunResult(outcome="failed", message=INTERNAL)
        with self._changed:
            state = self._board.state(pipe.name)
            is_new = failure is not None or (seen is not None and seen != state.seen)
            run = None
            if activity.outcome is None and is_new and not state.is_paused:
                run = self._begun(pipe.name)
            if run is None:
                self._board.polled(pipe.name, is_up_to_date=not is_new)
            elif failure is not None:
                self._board.end(pipe.name, failure)
            if run is None or failure is not None:
                self._release(pipe.name)
                return
        self._carry_out(pipe, run, activity)

    def _begun(self, name: str) -> PipeRun | None:
        try:
            return self._board.begin(name)
        except Unavailable as error:
            logger.warning("a pipe is not started", extra={"reason": str(error)})
            return None

    def _carry_out(
        self,
        pipe: CreatePipe,
        run: PipeRun,
        activity: _Activity,
        on_error: Callable[[FrazilError], None] = lambda error: None,
    ) -> PipeRun:
        """Run a pipe that has begun, and note how it ended."""
        result = RunResult(outcome="failed", message=INTERNAL)
        begin_ns = self._clock.monotonic_ns()
        try:
            result = self._work.run(pipe, activity.cancel_token)
        except FrazilError as error:
            is_cancelled = activity.outcome is None and _is_cancelled(activity.cancel_token)
            outcome: PipeOutcome = "cancelled" if is_cancelled else "failed"
            result = RunResult(outcome=outcome, message=str(error))
            on_error(error)
        except Exception:  # top of loop: the pipe is failing, and the others run
            logger.exception("a pipe failed", extra={"pipe": pipe.name})
            on_error(Unavailable(f"pipe {pipe.name} failed: {INTERNAL}"))
        finally:
            with self._changed:
                if result.outcome != "ok" and activity.outcome is not None:
                    result = RunResult(outcome=activity.outcome, message=result.message)
                run = self._board.end(pipe.name, result)
                self._release(pipe.name)
        took_ms = (self._clock.monotonic_ns() - begin_ns) // NS_PER_MS
        facts = {"pipe": pipe.name, "run": run.run_id, "rows": run.rows, "took_ms": took_ms}
        if run.outcome == "ok":
            logger.info("pipe ran", extra=facts)
        else:
            logger.warning(
                "pipe did not load",
                extra={**facts, "outcome": run.outcome, "reason": run.message},
            )
        return run

    def _release(self, name: str) -> None:
        del self._active[name]
        self._changed.notify_all()


def _is_cancelled(cancel_token: CancelToken) -> bool:
    try:
        cancel_token.check()
    except FrazilError:
        return True
    return False


def _cancel(activity: _Activity, outcome: PipeOutcome, error: FrazilError) -> None:
    """Cancel without the lock: it may have to wait for Spark."""
    activity.outcome = outcome
    activity.cancel_token.cancel(error)
