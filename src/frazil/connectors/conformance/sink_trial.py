"""SinkTrial: one sink over a topic of its own, killed between deliveries and started again."""

from __future__ import annotations

from dataclasses import dataclass

from frazil.connectors.messages import (
    BatchesDelivered,
    ConnectorFailed,
    ConnectorFinished,
    ConnectorRunning,
    StartConnector,
    StopConnector,
)
from frazil.connectors.runtime.connector_process import ConnectorProcess, Wakeup
from frazil.connectors.runtime.sink_run import SinkRun
from frazil.disk import Disk
from frazil.errors import Malformed, Unavailable
from frazil.log import Log
from frazil.model import NS_PER_MS, Clock, GiB

NAME = "trial"
SILENCE_NS = 60_000 * NS_PER_MS
STOP_NS = 5_000 * NS_PER_MS


@dataclass(slots=True)
class SinkTrial:
    """Lives of one sink over one log."""

    log: Log
    disk: Disk
    start: StartConnector
    clock: Clock
    delivered: int = 0
    refused: int = 0

    def live(self, kill_at: int | None = None) -> int:
        """Run one life: until everything is delivered, or until delivery number `kill_at`, which
        is not noted. Returns how many were made."""
        wakeup = Wakeup()
        run = SinkRun(
            NAME,
            self.start.topic,
            self.log,
            self.disk,
            self.clock,
            wake=wakeup.set,
            on_delivered=self._on_delivered,
        )
        process = ConnectorProcess(NAME, wakeup, self.clock, memory_bytes_max=2 * GiB)
        try:
            process.send(self.start)
            return self._serve(process, run, kill_at)
        finally:
            process.close()
            run.save()
            run.close()
            wakeup.close()

    def _on_delivered(self, records: int, _: int, refused: int) -> None:
        self.delivered += records
        self.refused += refused

    def _serve(self, process: ConnectorProcess, run: SinkRun, kill_at: int | None) -> int:
        count, is_running, stop_ns = 0, False, None
        heard_ns = self.clock.monotonic_ns()
        while True:
            process.wait(0.1, reads=True)
            now_ns = self.clock.monotonic_ns()
            for message in process.messages():
                heard_ns = now_ns
                if isinstance(message, ConnectorFailed):
                    raise Malformed(f"the sink failed: {message.message}")
                if isinstance(message, ConnectorFinished):
                    return count
                is_running = is_running or isinstance(message, ConnectorRunning)
                if isinstance(message, BatchesDelivered):
                    count += 1
                    if count == kill_at:
                        process.kill()
                        return count
                    run.take(message)
            run.step()
            while is_running and stop_ns is None and (delivery := run.next()) is not None:
                process.send(delivery)
            if is_running and stop_ns is None and run.is_idle and not run.wait(0):
                stop_ns = now_ns + STOP_NS
                process.send(StopConnector())
            if stop_ns is not None and now_ns > stop_ns:
                raise Unavailable("the sink did not stop within 5 s")
            if process.has_ended and not process.has_messages:
                raise Unavailable(f"the process ended by itself: {process.close()}")
            if now_ns - heard_ns > SILENCE_NS:
                raise Unavailable("put and flush did not return for a minute")
