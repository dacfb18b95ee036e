"""ConnectorStates: what is kept of each connector between starts, in memory and as a checkpoint.

    definitions/connector_state.ckpt    of all connectors; replaced whole

How far a source has read is in the log, with its records; how far a sink has written is the
progress of its subscriber.
"""

from __future__ import annotations

import logging
import threading

import msgspec

from frazil.connectors.messages import Role
from frazil.disk import Disk, is_full, make_directories, read_checkpoint, write_checkpoint
from frazil.errors import Corrupt, Unavailable

logger = logging.getLogger(__name__)

FOLDER = "definitions"
PATH = f"{FOLDER}/connector_state.ckpt"
KIND = b"CONN"
VERSION = 1
HINT = "RESUME starts each connector; sources go on where the log is."


class ConnectorState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept of one connector."""

    epoch: int = 0
    """Of the last process that was started."""
    is_paused: bool = False
    failure: str = ""
    """Why it does not run until RESUME."""


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    connectors: dict[str, ConnectorState] = {}


class ConnectorStates:
    """Any thread may call it."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._lock = threading.Lock()
        self._damage = ""
        try:
            self._states = self._read()
        except Corrupt as error:
            # Which connectors were paused is unknown: none runs before someone has looked.
            logger.error("connectors do not run", extra={"reason": str(error)})
            self._damage, self._states = str(error), {}

    def _read(self) -> dict[str, ConnectorState]:
        body = read_checkpoint(self._disk, PATH, KIND, VERSION, HINT)
        if body is None:
            return {}
        try:
            return dict(msgspec.json.decode(body, type=_Stored).connectors)
        except msgspec.MsgspecError as error:
            raise Corrupt(
                path=PATH, position=0, expected="states as JSON", found=str(error), hint=HINT
            ) from error

    def get(self, role: Role, name: str) -> ConnectorState:
        """Return the state of a connector; a new one has the default."""
        return self._states.get(f"{role}/{name}", ConnectorState(failure=self._damage))

    def put(self, role: Role, name: str, state: ConnectorState | None) -> None:
        """Replace a state, or remove it. Durable on return; `Unavailable` if that fails, and then
        nothing has changed."""
        with self._lock:
            states = {key: value for key, value in self._states.items() if key != f"{role}/{name}"}
            if state is not None:
                states[f"{role}/{name}"] = state
            try:
                make_directories(self._disk, FOLDER)
                body = msgspec.json.encode(_Stored(connectors=states))
                write_checkpoint(self._disk, PATH, KIND, VERSION, body)
            except OSError as error:
                reason = "the disk is full" if is_full(error) else str(error)
                raise Unavailable(f"{PATH} could not be changed: {reason}") from error
            self._states = states
