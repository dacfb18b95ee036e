"""When a pipe is due. All functions are pure: times are milliseconds since 1970, UTC."""

from __future__ import annotations

from frazil.definitions import CreatePipe, parse_cron
from frazil.load.pipes.pipe_state import PipeState

BACKOFF_MIN_MS = 10_000
"""Pause before the first retry; each further one is twice as long."""
BACKOFF_MAX_MS = 300_000
MS_PER_S = 1000


def backoff_ms(attempt: int) -> int:
    """Return the pause after a failed attempt, the first of which is 1."""
    return min(BACKOFF_MAX_MS, BACKOFF_MIN_MS << min(attempt - 1, 20))


def due_ms(pipe: CreatePipe, state: PipeState, poll_interval_ms: int) -> int | None:
    """Return when a pipe is to be started next, maybe in the past; None if it runs or is paused.
    Whatever was missed until then is one run."""
    if state.is_running or state.is_paused:
        return None
    retry = retry_ms(pipe, state)
    if pipe.on_new_files:
        if retry is not None:
            return retry
        if state.is_failing and state.ended_ms is not None:
            return state.ended_ms + BACKOFF_MAX_MS  # what failed so often may work later
        return state.since_ms if state.polled_ms is None else state.polled_ms + poll_interval_ms
    scheduled = scheduled_ms(pipe, state)
    return scheduled if retry is None else min(retry, scheduled)


def retry_ms(pipe: CreatePipe, state: PipeState) -> int | None:
    """Return when a failed run is tried again; None if it is not."""
    if not state.is_failing or state.ended_ms is None or state.trigger == "statement":
        return None
    return None if state.attempt > pipe.retries else state.ended_ms + backoff_ms(state.attempt)


def scheduled_ms(pipe: CreatePipe, state: PipeState) -> int:
    """Return the first time of the schedule after the start of the last run. An interval begins
    when the pipe was created, replaced or resumed, with a first run at once."""
    last_ms = max(state.run_started_ms, state.since_ms - 1)
    if pipe.cron:
        return parse_cron(pipe.cron).next_after_ms(last_ms)
    assert pipe.every_s is not None, "a pipe has an interval, cron or ON NEW FILES"
    every_ms = pipe.every_s * MS_PER_S
    return state.since_ms + ((last_ms - state.since_ms) // every_ms + 1) * every_ms


def schedule_text(pipe: CreatePipe) -> str:
    """Return the schedule as a statement writes it."""
    if pipe.on_new_files:
        return "ON NEW FILES"
    return f"CRON '{pipe.cron}'" if pipe.cron else f"SCHEDULE '{pipe.every_s} seconds'"
