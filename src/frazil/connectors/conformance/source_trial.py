"""SourceTrial: one source over a log of its own, life after life, killed where it hurts.

before   a batch has arrived, and is lost with the node
after    a batch is durable, and the source was not told
told     the source was told, and may have acknowledged upstream
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace

from frazil.connectors.messages import (
    ConnectorFailed,
    ConnectorFinished,
    FetchedBatch,
    StartConnector,
    StopConnector,
    StreamPosition,
)
from frazil.connectors.own_headers import without_own_headers
from frazil.connectors.runtime.connector_process import ConnectorProcess, Wakeup
from frazil.connectors.runtime.source_run import SourceRun
from frazil.connectors.step_names import step_prefix
from frazil.errors import Malformed, Unavailable
from frazil.log import Log, step_in
from frazil.model import NS_PER_MS, Clock, GiB

NAME = "trial"
Moment = Literal["before", "after", "told"]
MOMENTS: tuple[Moment, ...] = ("before", "after", "told")
Content = dict[tuple[str, int, str], list[tuple[object, ...]]]
"""Topic, partition and step of the log -> key, value and headers of its records, in order."""
SILENCE_NS = 5_000 * NS_PER_MS
"""`poll` returns after half a second if there is nothing, so that a process says something."""
STOP_NS = 5_000 * NS_PER_MS


@dataclass(slots=True)
class SourceTrial:
    """Lives of one source over one log."""

    log: Log
    start: StartConnector
    clock: Clock
    quiet_ns: int
    epoch: int = 0
    slowest_ns: int = 0
    """The longest silence of a process that was running."""

    def live(self, kill_at: int | None = None, moment: Moment = "told") -> int:
        """Run one life: until nothing has come for a while, or until its batch number `kill_at`,
        at a moment. Returns the batches that arrived."""
        known = [
            StreamPosition(
                each.topic,
                each.partition,
                each.source.removeprefix(step_prefix(NAME)),
                each.position.position or b"",
            )
            for each in self.log.sources.find(step_prefix(NAME))
        ]
        self.epoch += 1
        wakeup = Wakeup()
        run = SourceRun(
            NAME,
            self.start.topic,
            self.epoch,
            known,
            self.log,
            self.clock,
            in_flight_bytes_max=self.start.in_flight_bytes_max,
            wake=wakeup.set,
            on_durable=lambda records, size: None,
        )
        process = ConnectorProcess(NAME, wakeup, self.clock, memory_bytes_max=2 * GiB)
        try:
            process.send(replace(self.start, epoch=self.epoch, known=known))
            count = self._serve(process, run, kill_at, moment)
            if kill_at is None or count < kill_at:
                self._stop(process)
            else:
                process.kill()
        finally:
            process.close()
            while not run.is_settled:
                self.clock.sleep(0.001)
            wakeup.close()
        return count

    def _serve(
        self, process: ConnectorProcess, run: SourceRun, kill_at: int | None, moment: Moment
    ) -> int:
        count, is_running = 0, False
        heard_ns = news_ns = self.clock.monotonic_ns()
        while True:
            process.wait(0.1, reads=run.takes_more)
            now_ns = self.clock.monotonic_ns()
            for message in process.messages():
                if is_running:
                    self.slowest_ns = max(self.slowest_ns, now_ns - heard_ns)
                is_running, heard_ns = True, now_ns
                if isinstance(message, ConnectorFailed):
                    raise Malformed(f"the source failed: {message.message}")
                if not isinstance(message, FetchedBatch):
                    continue
                count, news_ns = count + 1, now_ns
                if count == kill_at and moment == "before":
                    return count
                run.take(message)
                if count == kill_at:
                    self._until(lambda: run.is_settled)
                    if moment == "told":
                        self._tell(process, run)
                    return count
            self._tell(process, run)
            if process.has_ended and not process.has_messages:
                raise Unavailable(f"the process ended by itself: {process.close()}")
            if now_ns - heard_ns > SILENCE_NS + (0 if is_running else SILENCE_NS):
                raise Unavailable("poll did not return for 5 s; it must return within its timeout")
            if is_running and run.is_settled and now_ns - news_ns > self.quiet_ns:
                self._tell(process, run)
                return count

    def _tell(self, process: ConnectorProcess, run: SourceRun) -> None:
        for durable in run.step():
            process.send(durable)

    def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self.clock.sleep(0.001)

    def _stop(self, process: ConnectorProcess) -> None:
        """Ask to stop, and check that it does."""
        process.send(StopConnector())
        end_ns = self.clock.monotonic_ns() + STOP_NS
        while self.clock.monotonic_ns() < end_ns:
            process.wait(0.1, reads=True)
            for message in process.messages():
                if isinstance(message, ConnectorFinished):
                    return
                if isinstance(message, ConnectorFailed):
                    raise Malformed(f"the source failed while it stopped: {message.message}")
            if process.has_ended:
                break
        raise Unavailable("the source did not stop within 5 s")

    def content(self) -> Content:
        """Return what the log has of each stream."""
        found: Content = {}
        for topic in self.log.topics():
            for partition in topic.partitions:
                reader = self.log.reader(topic.name, "earliest", partition=partition.index)
                while batches := reader.read():
                    for batch in batches:
                        records = batch.records()
                        step = step_in(records)
                        assert step is not None, "nothing else writes to this log"
                        key = (topic.name, partition.index, step.source)
                        for record in map(without_own_headers, records):
                            row = (record.key, record.value, record.headers)
                            found.setdefault(key, []).append(row)
                reader.close()
        return found
