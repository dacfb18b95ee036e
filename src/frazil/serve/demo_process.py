"""DemoShop: demo data for this node, for whoever has nothing yet.

A process of its own, with less right to the processor than the node, and a client of OTLP as any
other: it cannot hurt what others are acknowledged.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Annotated, Literal

import msgspec

from frazil.errors import Conflict, Unavailable
from frazil.ingest import OtlpPorts
from frazil.model import Clock

NICENESS = 10
SAID_CHARS_MAX = 500
END_S = 5.0
"""How long a process that was killed may take to be gone."""
KINDS = ("spans", "logs", "points")


class DemoRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much of it."""

    seconds: Annotated[float, msgspec.Meta(ge=1, le=600)] = 60
    """How long it goes on."""
    backfill_minutes: Annotated[float, msgspec.Meta(ge=0, le=60)] = 15
    """So much of the past is sent before, at once."""
    rate: Annotated[float, msgspec.Meta(ge=0.1, le=50)] = 10
    """Customers a second."""


class DemoState(msgspec.Struct, frozen=True, kw_only=True):
    """The demo of this node: does it run, and what became of the last one."""

    state: Literal["idle", "running", "stopping"]
    started_ms: int | None = None
    """When the last one began; None when there was none."""
    seconds: float | None = None
    backfill_minutes: float | None = None
    acknowledged: dict[str, int] | None = None
    """Spans, logs and points of the last one, once it has ended."""
    trouble: str | None = None
    """Why the last one failed; None when it did not."""
    refusal: str | None = None
    """Why none can be started here; None when one can."""


class DemoShop:
    """One demo at a time. Any thread may call."""

    def __init__(self, otlp: OtlpPorts, clock: Clock) -> None:
        self._otlp = otlp
        self._clock = clock
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._waiting: threading.Thread | None = None
        self._last = DemoState(state="idle", refusal=self._refusal())
        self._is_closed = False

    @property
    def state(self) -> DemoState:
        return self._last

    def start(self, asked: DemoRequest) -> None:
        """Start one. `Conflict` while one runs, `Unavailable` where the node lets none in."""
        with self._lock:
            if self._last.refusal is not None:
                raise Unavailable(self._last.refusal)
            if self._is_closed:
                raise Unavailable("this node is stopping")
            if self._process is not None:
                raise Conflict("demo data is being sent already; stop it first, or wait")
            process = self._process = self._spawn(asked)
            self._last = DemoState(
                state="running",
                started_ms=self._clock.wall_ms(),
                seconds=asked.seconds,
                backfill_minutes=asked.backfill_minutes,
            )
            self._waiting = threading.Thread(
                target=self._wait, args=(process,), name="frazil-demo", daemon=True
            )
            self._waiting.start()

    def stop(self) -> None:
        """Ask it to end; it still sends what it has. Harmless when none runs."""
        with self._lock:
            if self._process is not None:
                self._process.terminate()
                self._last = msgspec.structs.replace(self._last, state="stopping")

    def close(self) -> None:
        """End it where it stands, with the node."""
        with self._lock:
            self._is_closed = True
            if self._process is not None:
                self._process.kill()
            waiting = self._waiting
        if waiting is not None:
            waiting.join(END_S)

    def _refusal(self) -> str | None:
        """What opens the ports to others is not ours to use."""
        if not (self._otlp.needs_token or self._otlp.is_tls):
            return None
        wanted = "a token" if self._otlp.needs_token else "TLS"
        return (
            f"OTLP asks for {wanted} here, which the node does not use for itself; run "
            f"`frazil demo --endpoint {self._otlp.own_url}` with --token-file and --ca-file instead"
        )

    def _spawn(self, asked: DemoRequest) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "frazil", "demo", "--json"]
        command += ["--endpoint", self._otlp.own_url, "--rate", f"{asked.rate}"]
        command += ["--seconds", f"{asked.seconds}", "--backfill", f"{asked.backfill_minutes}"]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,  # a Ctrl-C is the node's
            )
        except OSError as error:
            raise Unavailable(f"no process can be started for the demo: {error}") from None
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
        return process

    def _wait(self, process: subprocess.Popen[str]) -> None:
        said, errors = process.communicate()
        with self._lock:
            self._process = None
            self._last = msgspec.structs.replace(
                self._last,
                state="idle",
                acknowledged=_acknowledged(said),
                trouble=_trouble(process.returncode, errors),
            )


def _acknowledged(said: str) -> dict[str, int] | None:
    """What a demo says at its end; None when it had nothing to say."""
    try:
        found = json.loads(said)
        return {kind: int(found[kind]["acknowledged"]) for kind in KINDS}
    except (ValueError, LookupError, TypeError):
        return None


def _trouble(code: int, errors: str) -> str | None:
    if code <= 0:
        return None  # Done, or ended by us.
    return errors.strip()[-SAID_CHARS_MAX:] or f"the demo ended with {code}"
