"""PipeState: what is known of a pipe's runs, in memory and as a checkpoint.

    definitions/pipe_state.ckpt    of all pipes; replaced whole

The rows of a run are safe without it: which files a table has is in the table's ledger.
"""

from __future__ import annotations

import msgspec

from frazil.definitions import PipeOutcome, PipeTrigger
from frazil.disk import Disk, make_directories, read_checkpoint, write_checkpoint
from frazil.errors import Corrupt

FOLDER = "definitions"
PATH = f"{FOLDER}/pipe_state.ckpt"
KIND = b"PIPE"
VERSION = 1
HINT = "RESUME PIPE starts each pipe anew; files that were loaded are not loaded again."


class PipeState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The last run of one pipe. Times are milliseconds since 1970; 0 if there was none."""

    since_ms: int
    """When it was created, replaced or resumed."""
    is_paused: bool = False
    is_running: bool = False
    run_id: int = 0
    attempt: int = 0
    trigger: PipeTrigger = "schedule"
    run_started_ms: int = 0
    """Start of the first attempt."""
    started_ms: int = 0
    """Start of the last attempt."""
    ended_ms: int | None = None
    outcome: PipeOutcome | None = None
    """Of the last attempt that has ended."""
    message: str = ""
    """Why that attempt failed."""
    failures: int = 0
    """Attempts since the last success."""
    succeeded_ms: int | None = None
    """End of the last success."""
    files: int = 0
    """Of the last success, as rows."""
    rows: int = 0
    seen: str = ""
    """Digest of the files that the last success has left out; ON NEW FILES does not run for them
    alone."""
    polled_ms: int | None = None
    """When ON NEW FILES last looked. Not stored: it looks again after a restart."""

    @property
    def is_failing(self) -> bool:
        return self.failures > 0


class PipeStates(msgspec.Struct, frozen=True, kw_only=True):
    """The states of all pipes."""

    next_run_id: int = 1
    pipes: dict[str, PipeState] = {}


def read_states(disk: Disk) -> PipeStates:
    """Return the stored states. `Corrupt` if the file is damaged."""
    body = read_checkpoint(disk, PATH, KIND, VERSION, HINT)
    if body is None:
        return PipeStates()
    try:
        return msgspec.json.decode(body, type=PipeStates)
    except msgspec.MsgspecError as error:
        raise Corrupt(
            path=PATH, position=0, expected="states as JSON", found=str(error), hint=HINT
        ) from error


def write_states(disk: Disk, states: PipeStates) -> None:
    """Replace the stored states. Durable on return; `OSError` if they cannot be written."""
    kept = {
        name: msgspec.structs.replace(state, polled_ms=None) for name, state in states.pipes.items()
    }
    body = msgspec.json.encode(msgspec.structs.replace(states, pipes=kept))
    make_directories(disk, FOLDER)
    write_checkpoint(disk, PATH, KIND, VERSION, body)
