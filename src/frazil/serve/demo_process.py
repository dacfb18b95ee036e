"""DemoShop: a process that sends demo data to this node.

It runs at lower priority and is an ordinary OTLP client, so it cannot harm other clients.
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
from msgspec import Meta

from frazil.errors import Conflict, Unavailable
from frazil.model import Clock, doc
from frazil.status import OtlpAddresses

NICENESS = 10
ERROR_CHARS_MAX = 500
END_S = 5.0
"""How long to wait for a killed process."""
KINDS = ("spans", "logs", "points")


class DemoRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Duration and size of the demo."""

    seconds: Annotated[float, Meta(ge=1, le=600, description="Duration.")] = 60
    backfill_minutes: Annotated[
        float, Meta(ge=0, le=60, description="Past data to send first.")
    ] = 15
    rate: Annotated[float, Meta(ge=0.1, le=50, description="Customers per second.")] = 10


class DemoState(msgspec.Struct, frozen=True, kw_only=True):
    """State of the demo on this node, and the result of the last run."""

    state: Literal["idle", "running", "stopping"]
    started_ms: Annotated[int | None, doc("Start of the last run, if any.")] = None
    seconds: float | None = None
    backfill_minutes: float | None = None
    acknowledged: Annotated[
        dict[str, int] | None,
        doc("Spans, logs and points of the last run, after its end."),
    ] = None
    trouble: Annotated[str | None, doc("Why the last run failed, or null.")] = None
    refusal: Annotated[str | None, doc("Why it cannot run here, or null.")] = None


class DemoShop:
    """Runs one demo at a time. Any thread may call it."""

    def __init__(self, otlp: OtlpAddresses, clock: Clock) -> None:
        self._otlp = otlp
        self._clock = clock
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._waiter: threading.Thread | None = None
        self._last = DemoState(state="idle", refusal=self._refusal())
        self._is_closed = False

    @property
    def state(self) -> DemoState:
        return self._last

    def start(self, params: DemoRequest) -> None:
        """Start the demo. `Conflict` if one is running, `Unavailable` if the node allows none."""
        with self._lock:
            if self._last.refusal is not None:
                raise Unavailable(self._last.refusal)
            if self._is_closed:
                raise Unavailable("this node is stopping")
            if self._process is not None:
                raise Conflict("the demo is already running; stop it first, or wait")
            process = self._process = self._spawn(params)
            self._last = DemoState(
                state="running",
                started_ms=self._clock.wall_ms(),
                seconds=params.seconds,
                backfill_minutes=params.backfill_minutes,
            )
            self._waiter = threading.Thread(
                target=self._wait, args=(process,), name="frazil-demo", daemon=True
            )
            self._waiter.start()

    def stop(self) -> None:
        """Ask the demo to stop after sending what it has. Does nothing if none is running."""
        with self._lock:
            if self._process is not None:
                self._process.terminate()
                self._last = msgspec.structs.replace(self._last, state="stopping")

    def close(self) -> None:
        """Kill the demo."""
        with self._lock:
            self._is_closed = True
            if self._process is not None:
                self._process.kill()
            waiter = self._waiter
        if waiter is not None:
            waiter.join(END_S)

    def _refusal(self) -> str | None:
        """The node does not use the credentials of its clients."""
        if not (self._otlp.needs_token or self._otlp.is_tls):
            return None
        credential = "a token" if self._otlp.needs_token else "TLS"
        return (
            f"OTLP requires {credential} here, which the node does not have; run "
            f"`frazil demo --endpoint {self._otlp.url}` with --token-file and --ca-file instead"
        )

    def _spawn(self, params: DemoRequest) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "frazil", "demo", "--json"]
        command += ["--endpoint", self._otlp.url, "--rate", f"{params.rate}"]
        command += ["--seconds", f"{params.seconds}", "--backfill", f"{params.backfill_minutes}"]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,  # Ctrl-C goes only to the node
            )
        except OSError as error:
            raise Unavailable(f"the demo process could not be started: {error}") from None
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
        return process

    def _wait(self, process: subprocess.Popen[str]) -> None:
        output, errors = process.communicate()
        with self._lock:
            self._process = None
            self._last = msgspec.structs.replace(
                self._last,
                state="idle",
                acknowledged=_acknowledged(output),
                trouble=_trouble(process.returncode, errors),
            )


def _acknowledged(output: str) -> dict[str, int] | None:
    """Parse the totals that a demo prints at its end; None if there are none."""
    try:
        totals = json.loads(output)
        return {kind: int(totals[kind]["acknowledged"]) for kind in KINDS}
    except (ValueError, LookupError, TypeError):
        return None


def _trouble(code: int, errors: str) -> str | None:
    if code <= 0:
        return None  # finished, or stopped by us
    return errors.strip()[-ERROR_CHARS_MAX:] or f"the demo exited with code {code}"
