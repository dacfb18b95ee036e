"""PipeBoard: which pipes there are, when each is due, and what became of its runs.

    due ─> begin: stored as running ─> the run ─> end: history, then stored

Without threads: `PipeScheduler` calls it under a lock, and tests call it with a clock of their own.
After a crash, a run that was stored as running is noted as interrupted, and counts as failed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from msgspec.structs import replace

from frazil.definitions import (
    CreatePipe,
    PipeHistory,
    PipeOutcome,
    PipeRun,
    PipeTrigger,
    masked,
)
from frazil.disk import Disk, is_full
from frazil.errors import Conflict, Corrupt, Unavailable, Unknown
from frazil.load.pipes.pipe_state import PATH, PipeState, PipeStates, read_states, write_states
from frazil.load.pipes.schedule import due_ms, retry_ms, scheduled_ms
from frazil.metrics import Counter
from frazil.model import Clock

logger = logging.getLogger(__name__)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INTERRUPTED = "the node ended during the run; files that were not loaded are loaded by the next"

RUNS = Counter("frazil.load.pipe.runs", "Attempts of pipes that have ended, by pipe and outcome.")
ROWS = Counter("frazil.load.pipe.rows", "Rows loaded by pipes, by pipe.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """How an attempt ended."""

    outcome: PipeOutcome
    files: int = 0
    rows: int = 0
    errors: int = 0
    message: str = ""
    seen: str = ""
    """Digest of the files that were left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeStatus:
    """What SHOW PIPES and `frazil status` show of one pipe."""

    pipe: CreatePipe
    state: PipeState
    next_ms: int | None
    """None if it runs, or is paused."""

    @property
    def word(self) -> str:
        if self.state.is_running:
            return "running"
        if self.state.is_paused:
            return "paused"
        return "failing" if self.state.is_failing else "waiting"


class PipeBoard:
    """Owned by one thread at a time. `statuses` may be called by any."""

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        history: PipeHistory,
        pipes: Iterable[CreatePipe],
        *,
        poll_interval_ms: int,
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._history = history
        self._poll_interval_ms = poll_interval_ms
        self._pipes: Mapping[str, CreatePipe] = MappingProxyType({p.name: p for p in pipes})
        self._states = self._recovered()

    def _recovered(self) -> PipeStates:
        now_ms = self._clock.wall_ms()
        try:
            stored = read_states(self._disk)
        except Corrupt as error:
            # Which pipes were paused is unknown: none runs before someone has looked.
            logger.error("pipes are paused", extra={"reason": str(error)})
            damaged = PipeState(since_ms=now_ms, is_paused=True, message=str(error), failures=1)
            return PipeStates(pipes=dict.fromkeys(self._pipes, damaged))
        states = {name: stored.pipes.get(name, PipeState(since_ms=now_ms)) for name in self._pipes}
        self._states = PipeStates(next_run_id=stored.next_run_id, pipes=states)
        cut = [name for name, state in states.items() if state.is_running]
        # A run whose end is in the history, but not in its state, has ended so.
        ended = {(run.pipe, run.run_id, run.attempt): run for run in self._ended(cut)}
        for name in cut:
            run = ended.get((name, states[name].run_id, states[name].attempt))
            if run is None:
                self.end(name, RunResult(outcome="interrupted", message=INTERRUPTED))
            else:
                result = RunResult(
                    outcome=run.outcome, files=run.files, rows=run.rows, message=run.message
                )
                self._put_state(name, self._after(states[name], result))
        return self._states

    def _ended(self, names: list[str]) -> list[PipeRun]:
        return self._history.runs() if names else []

    def statuses(self) -> list[PipeStatus]:
        """Return all pipes, by name."""
        pipes, states = self._pipes, self._states.pipes
        return [
            PipeStatus(
                pipe=pipes[name],
                state=states[name],
                next_ms=due_ms(pipes[name], states[name], self._poll_interval_ms),
            )
            for name in sorted(pipes)
            if name in states
        ]

    def state(self, name: str) -> PipeState:
        """Return the state of a pipe. `Unknown` if there is none."""
        if name not in self._pipes:
            known = ", ".join(sorted(self._pipes)) or "none"
            raise Unknown(f"there is no pipe {name}; there are: {known}")
        return self._states.pipes[name]

    def pipe(self, name: str) -> CreatePipe:
        """Return a pipe. `Unknown` if there is none."""
        self.state(name)
        return self._pipes[name]

    def put(self, pipe: CreatePipe) -> None:
        """Begin a new or replaced pipe. Its schedule begins now."""
        self._pipes = MappingProxyType({**self._pipes, pipe.name: pipe})
        self._put_state(pipe.name, PipeState(since_ms=self._clock.wall_ms()))

    def drop(self, name: str) -> None:
        """Forget a pipe. Its history stays."""
        self._pipes = MappingProxyType({k: p for k, p in self._pipes.items() if k != name})
        states = {k: state for k, state in self._states.pipes.items() if k != name}
        self._states = replace(self._states, pipes=states)
        self._save()

    def pause(self, name: str) -> None:
        """Start no more runs of a pipe. `Unavailable` if that cannot be stored."""
        self._put_state(name, replace(self.state(name), is_paused=True), is_required=True)

    def resume(self, name: str) -> None:
        """Start runs again: the schedule begins now, whatever was missed."""
        state = self.state(name)
        now_ms = self._clock.wall_ms()
        resumed = replace(state, is_paused=False, since_ms=now_ms, failures=0, polled_ms=None)
        self._put_state(name, resumed, is_required=True)

    def due(self) -> list[str]:
        """Return the pipes that are to be started now, the one that has waited longest first."""
        now_ms = self._clock.wall_ms()
        self._follow_clock(now_ms)
        waiting = [
            (status.next_ms, status.pipe.name)
            for status in self.statuses()
            if status.next_ms is not None and status.next_ms <= now_ms
        ]
        return [name for _, name in sorted(waiting)]

    def next_ms(self) -> int | None:
        """Return when the next pipe is due; None if none is."""
        times = [status.next_ms for status in self.statuses() if status.next_ms is not None]
        return min(times, default=None)

    def polled(self, name: str, *, is_up_to_date: bool) -> None:
        """Note that ON NEW FILES has looked. If there was nothing to load, it is not failing."""
        state = replace(self.state(name), polled_ms=self._clock.wall_ms())
        if is_up_to_date:
            state = replace(state, failures=0)
        self._states = replace(self._states, pipes={**self._states.pipes, name: state})

    def begin(self, name: str, *, is_statement: bool = False) -> PipeRun:
        """Begin an attempt of a pipe, durably. `Conflict` if one is running, `Unavailable` if it
        cannot be stored: then it must not run."""
        pipe, state = self.pipe(name), self.state(name)
        if state.is_running:
            raise Conflict(f"pipe {name} is running; wait until it has ended")
        now_ms = self._clock.wall_ms()
        trigger: PipeTrigger = "new files" if pipe.on_new_files else "schedule"
        run_id, attempt, begun_ms = self._states.next_run_id, 1, now_ms
        if is_statement:
            trigger = "statement"
        elif self._is_retry(pipe, state, now_ms):
            run_id, attempt, begun_ms = state.run_id, state.attempt + 1, state.run_started_ms
        begun = replace(
            state,
            is_running=True,
            run_id=run_id,
            attempt=attempt,
            trigger=trigger,
            run_started_ms=begun_ms,
            started_ms=now_ms,
        )
        before = self._states
        next_run_id = max(before.next_run_id, run_id + 1)
        self._states = replace(before, next_run_id=next_run_id)
        try:
            self._put_state(name, begun, is_required=True)
        except Unavailable:
            self._states = before
            raise
        run = self._run_of(name, begun)
        self._history.begin(run)
        return run

    def _is_retry(self, pipe: CreatePipe, state: PipeState, now_ms: int) -> bool:
        """Whether an attempt that begins now continues the last run. If a time of the schedule has
        come since, it is another run."""
        if retry_ms(pipe, state) is None:
            return False
        return pipe.on_new_files or scheduled_ms(pipe, state) > now_ms

    def end(self, name: str, result: RunResult) -> PipeRun:
        """Note how the running attempt of a pipe has ended. It has ended whether or not that can
        be stored."""
        state = self.state(name)
        assert state.is_running, f"pipe {name} runs"
        after = self._after(state, result)
        run = replace(
            self._run_of(name, state),
            ended_at=_time(after.ended_ms or 0),
            outcome=result.outcome,
            files=result.files,
            rows=result.rows,
            errors=result.errors,
            message=masked(result.message),
        )
        try:
            self._history.end(run)
        except OSError as error:
            logger.warning("a run is not in the history", extra={"reason": str(error)})
        self._put_state(name, after)
        RUNS.add(pipe=name, outcome=result.outcome)
        ROWS.add(result.rows, pipe=name)
        return run

    def _after(self, state: PipeState, result: RunResult) -> PipeState:
        now_ms = self._clock.wall_ms()
        ended = replace(
            state,
            is_running=False,
            ended_ms=now_ms,
            outcome=result.outcome,
            message=masked(result.message),
        )
        if result.outcome == "cancelled":
            return ended
        if result.outcome != "ok":
            return replace(ended, failures=state.failures + 1)
        return replace(
            ended,
            failures=0,
            succeeded_ms=now_ms,
            files=result.files,
            rows=result.rows,
            seen=result.seen,
            polled_ms=now_ms,
        )

    def _run_of(self, name: str, state: PipeState) -> PipeRun:
        return PipeRun(
            pipe=name,
            run_id=state.run_id,
            attempt=state.attempt,
            trigger=state.trigger,
            table=self._pipes[name].copy.table,
            started_at=_time(state.started_ms),
        )

    def _follow_clock(self, now_ms: int) -> None:
        """If the wall clock was set back, count from now on: a run that seems to have started in
        the future must not put off the next one."""
        states = {name: _not_after(state, now_ms) for name, state in self._states.pipes.items()}
        if states != self._states.pipes:
            self._states = replace(self._states, pipes=states)

    def _put_state(self, name: str, state: PipeState, *, is_required: bool = False) -> None:
        before = self._states
        self._states = replace(before, pipes={**before.pipes, name: state})
        reason = self._save()
        if reason and is_required:
            self._states = before
            raise Unavailable(f"{PATH} could not be changed: {reason}")

    def _save(self) -> str:
        """Store all states; return why that failed."""
        try:
            write_states(self._disk, self._states)
        except OSError as error:
            reason = "the disk is full" if is_full(error) else str(error)
            logger.warning("states of pipes are not stored", extra={"reason": reason})
            return reason
        return ""


def _not_after(state: PipeState, now_ms: int) -> PipeState:
    times = (state.since_ms, state.run_started_ms, state.ended_ms or 0, state.polled_ms or 0)
    if max(times) <= now_ms:
        return state
    return replace(
        state,
        since_ms=min(state.since_ms, now_ms),
        run_started_ms=min(state.run_started_ms, now_ms),
        ended_ms=None if state.ended_ms is None else min(state.ended_ms, now_ms),
        polled_ms=None if state.polled_ms is None else min(state.polled_ms, now_ms),
    )


def _time(wall_ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=wall_ms)
