"""The state machine of pipes, with a clock that tests move: no due time is left out or run twice,
no pipe runs twice at once, and a crash at any moment loses none of that."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from frazil.definitions import CreatePipe, PipeHistory, parse_statement
from frazil.errors import Conflict, Unavailable, Unknown
from frazil.load.pipes.board import PipeBoard, RunResult
from frazil.load.pipes.pipe_state import PATH
from frazil.load.pipes.schedule import BACKOFF_MAX_MS, BACKOFF_MIN_MS, backoff_ms
from frazil.model import Rand
from tests.sim.clock import SimClock
from tests.sim.disk import Faults, PowerCut, SimDisk

MINUTE_MS = 60_000
POLL_MS = 10_000
EVERY_MS = {"fast": 7_000, "slow": 90_000, "cron": 5 * MINUTE_MS}
SCHEDULES = {
    "fast": "SCHEDULE '7 seconds' RETRIES=0",
    "slow": "SCHEDULE '90 seconds' RETRIES=2",
    "cron": "CRON '*/5 * * * *' RETRIES=1",
    "new": "ON NEW FILES RETRIES=2",
}
OK, FAILED = RunResult(outcome="ok", files=1, rows=10), RunResult(outcome="failed", message="no")


def pipe_of(name: str) -> CreatePipe:
    text = f"CREATE PIPE {name} {SCHEDULES[name]} AS COPY INTO t FROM @s"
    statement = parse_statement(text).statement
    assert isinstance(statement, CreatePipe)
    return statement


def board_over(disk: SimDisk, clock: SimClock, *names: str) -> PipeBoard:
    pipes = [pipe_of(name) for name in names]
    return PipeBoard(disk, clock, PipeHistory(disk), pipes, poll_interval_ms=POLL_MS)


@dataclass
class Model:
    """What is known of a pipe, told by the rules."""

    since_ms: int
    last_start_ms: int = -1
    is_paused: bool = False
    is_running: bool = False
    failed: int = 0
    """Attempts of the last run that failed, if it failed last."""
    ended_ms: int = 0
    attempts: list[str] = field(default_factory=list)

    def missed(self, name: str, now_ms: int) -> bool:
        """Whether a time of the schedule has come since the last start."""
        every_ms = EVERY_MS[name]
        first = self.since_ms if name != "cron" else -(-self.since_ms // every_ms) * every_ms
        return any(time > self.last_start_ms for time in range(first, now_ms + 1, every_ms))


class Pipes(RuleBasedStateMachine):
    """Creates, runs, pauses and crashes pipes."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = SimDisk()
        self.clock = SimClock()
        self.board = board_over(self.disk, self.clock)
        self.models: dict[str, Model] = {}
        self.rand = Rand(7)

    @rule(name=st.sampled_from(["fast", "slow", "cron"]))
    def create(self, name: str) -> None:
        if name in self.models and self.models[name].is_running:
            return  # the scheduler cancels it first
        attempts = self.models[name].attempts if name in self.models else []
        self.board.put(pipe_of(name))
        self.models[name] = Model(since_ms=self.clock.wall_ms(), attempts=attempts)

    @rule(ms=st.sampled_from([1, 3_000, 10_000, 20_000]) | st.integers(1, 20 * MINUTE_MS))
    def advance(self, ms: int) -> None:
        self.clock.advance(ms)

    @rule()
    def start_due(self) -> None:
        for name in self.board.due():
            self._begin(name, is_statement=False)

    @rule(ms=st.sampled_from([10_000, 20_000, 5 * MINUTE_MS]))
    def fail_all_and_wait(self, ms: int) -> None:
        for name in self.board.due():
            self._begin(name, is_statement=False)
            self._end(name, FAILED)
        self.clock.advance(ms)

    @precondition(lambda self: self.models)
    @rule(data=st.data())
    def execute(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.models)))
        if self.models[name].is_running:
            with pytest.raises(Conflict):
                self.board.begin(name, is_statement=True)
            return
        self._begin(name, is_statement=True)
        self._end(name, OK)

    @rule(is_ok=st.booleans(), data=st.data())
    def end(self, is_ok: bool, data: st.DataObject) -> None:
        running = sorted(name for name, model in self.models.items() if model.is_running)
        if running:
            self._end(data.draw(st.sampled_from(running)), OK if is_ok else FAILED)

    @precondition(lambda self: self.models)
    @rule(data=st.data(), is_paused=st.booleans())
    def pause(self, data: st.DataObject, is_paused: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.models)))
        model = self.models[name]
        if is_paused:
            self.board.pause(name)
        else:
            self.board.resume(name)
            model.since_ms, model.failed = self.clock.wall_ms(), 0
        model.is_paused = is_paused

    @rule(is_power_cut=st.booleans())
    def crash(self, is_power_cut: bool) -> None:
        """Everything that was answered is durable, and runs were interrupted."""
        self.disk = self.disk.crash(self.rand) if is_power_cut else self.disk.process_kill()
        self.board = board_over(self.disk, self.clock, *self.models)
        for name, model in self.models.items():
            if model.is_running:
                self._ended(model, "interrupted")
            assert self.board.state(name).is_paused == model.is_paused

    def _begin(self, name: str, *, is_statement: bool) -> None:
        model, now_ms = self.models[name], self.clock.wall_ms()
        assert not model.is_running, "a pipe never runs twice at once"
        run = self.board.begin(name, is_statement=is_statement)
        is_retry = not is_statement and not model.missed(name, now_ms)
        assert run.attempt == (model.failed + 1 if is_retry else 1)
        if not is_retry:
            model.failed = 0
            model.last_start_ms = now_ms
        model.is_running = True

    def _end(self, name: str, result: RunResult) -> None:
        self.board.end(name, result)
        self._ended(self.models[name], result.outcome)

    def _ended(self, model: Model, outcome: str) -> None:
        model.is_running = False
        model.ended_ms = self.clock.wall_ms()
        model.failed = 0 if outcome == "ok" else model.failed + 1
        model.attempts.append(outcome)

    @invariant()
    def due_is_what_was_missed_or_retried(self) -> None:
        now_ms = self.clock.wall_ms()
        due = set(self.board.due())
        for name, model in self.models.items():
            retries = pipe_of(name).retries
            retry_ms = model.ended_ms + backoff_ms(max(1, model.failed))
            is_retried = 0 < model.failed <= retries and retry_ms <= now_ms
            is_free = not model.is_running and not model.is_paused
            expected = is_free and (model.missed(name, now_ms) or is_retried)
            assert (name in due) == expected, (name, model, now_ms)

    @invariant()
    def the_history_has_each_attempt_once(self) -> None:
        runs = [run for run in PipeHistory(self.disk).runs() if run.outcome != "running"]
        keys = [(run.pipe, run.run_id, run.attempt) for run in runs]
        assert len(set(keys)) == len(keys)
        for name, model in self.models.items():
            own = [run for run in runs if run.pipe == name]
            assert [run.outcome for run in own] == model.attempts
            ids = [(run.run_id, run.attempt) for run in own]
            assert ids == sorted(ids)
            for before, after in pairwise(own):
                assert before.ended_at is not None and before.ended_at <= after.started_at


TestPipes = Pipes.TestCase
TestPipes.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_missed_runs_are_one_run() -> None:
    clock = SimClock()
    board = board_over(SimDisk(), clock, "slow")
    starts = []
    for step in (0, 89_999, 1, 100 * 90_000 + 5, 0, 89_995):
        clock.advance(step)
        for name in board.due():
            starts.append(board.begin(name).run_id)
            board.end(name, OK)
    assert starts == [1, 2, 3, 4], "at once, at the interval, once for a hundred, and in time"


def test_new_files_are_looked_for_and_failures_back_off() -> None:
    clock = SimClock()
    board = board_over(SimDisk(), clock, "new")
    assert board.due() == ["new"]
    board.polled("new", is_up_to_date=True)
    assert board.due() == []
    clock.advance(POLL_MS)
    pauses = []
    for _ in range(5):
        assert board.due() == ["new"]
        board.begin("new")
        board.end("new", FAILED)
        begin_ms = clock.wall_ms()
        while not board.due():
            clock.advance(1_000)
        pauses.append(clock.wall_ms() - begin_ms)
    # Two retries, then a longer pause, then again.
    first, second = BACKOFF_MIN_MS, 2 * BACKOFF_MIN_MS
    assert pauses == [first, second, BACKOFF_MAX_MS, first, second]
    board.polled("new", is_up_to_date=True)
    assert not board.state("new").is_failing


def test_a_clock_that_is_set_back_delays_nothing() -> None:
    clock = SimClock()
    board = board_over(SimDisk(), clock, "slow")
    board.begin("slow")
    board.end("slow", OK)
    clock.jump_wall(-365 * 86_400_000)
    assert board.due() == []
    clock.advance(90_000)
    assert board.due() == ["slow"]


def test_a_full_disk_starts_nothing() -> None:
    """A run that is not stored does not begin; one that has ended is known until the next start."""
    disk, clock = SimDisk(), SimClock()
    board = board_over(disk, clock, "slow")
    disk.faults = Faults(capacity_bytes=0)
    with pytest.raises(Unavailable, match="the disk is full"):
        board.begin("slow")
    assert board.due() == ["slow"]
    disk.faults = Faults()
    board.begin("slow")
    disk.faults = Faults(capacity_bytes=0)
    board.end("slow", OK)
    assert board.state("slow").outcome == "ok"
    disk.faults = Faults()
    again = board_over(disk.process_kill(), clock, "slow")
    assert again.state("slow").outcome == "interrupted"


def test_a_power_cut_at_any_call() -> None:
    """Whatever is half written, a run is in the history once, as its state says."""
    outcomes = set()
    for call in range(1, 200):
        disk, clock = SimDisk(faults=Faults(crash_at=call)), SimClock()
        try:
            board = board_over(disk, clock, "fast")
            board.begin("fast")
            board.end("fast", OK)
        except PowerCut:
            disk = disk.crash(Rand(call))
            noted = [run.outcome for run in PipeHistory(disk).runs()]
            state = board_over(disk, clock, "fast").state("fast")
            ended = [run.outcome for run in PipeHistory(disk).runs()]
            assert not state.is_running
            assert not noted or noted == ended, "what was noted stays"
            assert ended == ([] if state.outcome is None else [state.outcome])
            outcomes.add(state.outcome)
        else:
            break
    assert outcomes == {None, "interrupted", "ok"}


def test_damaged_states_pause_all_pipes() -> None:
    disk, clock = SimDisk(), SimClock()
    board = board_over(disk, clock, "slow")
    board.begin("slow")
    board.end("slow", OK)
    file = disk.open(PATH, "edit")
    file.write_at(20, b"\xff")
    file.sync()
    file.close()
    board = board_over(disk, clock, "slow")
    clock.advance(10 * MINUTE_MS)
    (status,) = board.statuses()
    assert (status.word, board.due()) == ("paused", [])
    assert "damaged" in status.state.message
    board.resume("slow")
    assert board.due() == ["slow"]
    with pytest.raises(Unknown, match="there is no pipe x; there are: slow"):
        board.pause("x")
