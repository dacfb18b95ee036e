"""Check that a connector keeps the contract. Run it on your own:

    python -m frazil.connectors.conformance TYPE --folder FOLDER [NAME=value …]
        [--topic TOPIC] [--connection NAME=value …] [--root FOLDER …] [--lives N] [--sink]

The source must be at rest: what it reads is there, and stays the same for each run. It is run once
undisturbed, then killed at every step and started again; both logs must have the same records.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from frazil.connectors.conformance.sink_trial import SinkTrial
from frazil.connectors.conformance.source_trial import MOMENTS, SourceTrial
from frazil.connectors.connector_types import connector_type
from frazil.connectors.messages import Role, StartConnector
from frazil.connectors.options import OptionValue, options_of
from frazil.disk import RealDisk
from frazil.errors import FrazilError, Malformed
from frazil.log import Log, Record, append_of_records
from frazil.model import NS_PER_MS, MiB, SystemClock, SystemRand

LIVES = 12
"""Killed lives of a source; each makes a batch of progress, at most."""
SINK_LIVES = 5
SINK_RECORDS = 5_000
SINK_BATCH = 10
FAILED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        for line in _check_sink(options) if options.sink else _check_source(options):
            _say(f"ok   {line}")
    except FrazilError as error:
        _say(f"FAIL {error}")
        return FAILED
    _say("the connector keeps the contract")
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m frazil.connectors.conformance",
        description="Check that a connector keeps the contract.",
    )
    add = parser.add_argument
    add("type", metavar="TYPE", help="name of the connector type")
    add("options", metavar="NAME=value", nargs="*", help="its options, as in CREATE SOURCE")
    add("--folder", required=True, help="a new folder for the logs of the runs")
    add("--topic", default="trial", help="topic, or pattern such as shop.{table}")
    add("--connection", metavar="NAME=value", nargs="*", default=[], help="of the connection")
    add("--root", nargs="*", default=[], help="folders that the connector may read")
    add("--sink", action="store_true", help="check the sink of the type, not the source")
    add("--lives", type=int, default=LIVES, help="how often the process is killed")
    add("--quiet-ms", type=int, default=1500, help="without news for so long, all was read")
    return parser


def _start(options: argparse.Namespace, role: Role) -> StartConnector:
    return StartConnector(
        role=role,
        name="trial",
        type_name=options.type,
        options={name: _value(text) for name, text in map(_pair, options.options)},
        topic=options.topic,
        connection_name="trial" if options.connection else "",
        connection=dict(map(_pair, options.connection)),
        roots=options.root,
        epoch=1,
        known=[],
        batch_bytes_max=16 * MiB,
        in_flight_bytes_max=4 * MiB,
    )


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise Malformed(f"{text} is not NAME=value")
    return name.lower(), value


def _value(text: str) -> OptionValue:
    """Read a value as a statement would: a number, TRUE or FALSE, or a text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _check_type(options: argparse.Namespace, role: Role) -> None:
    kind = connector_type(options.type)
    if (kind.source if role == "source" else kind.sink) is None:
        raise Malformed(f"{options.type} has no {role}")
    try:
        options_of(kind.options_for(role), {"no_such_option": 1})
    except Malformed:
        return
    raise Malformed("an unknown option was not refused")


def _opened(folder: str, name: str) -> tuple[Log, RealDisk]:
    path = Path(folder).absolute() / name
    disk = RealDisk(str(path))
    log = Log.open(disk, clock=SystemClock(), rand=SystemRand())
    if log.topics():
        log.close()
        raise Malformed(f"{path} has a log already; name a new folder")
    return log, disk


def _check_source(options: argparse.Namespace) -> Iterator[str]:
    _check_type(options, "source")
    yield "the type is found, and refuses unknown options"
    start = _start(options, "source")
    clock, quiet_ns = SystemClock(), options.quiet_ms * NS_PER_MS
    log, _ = _opened(options.folder, "undisturbed")
    try:
        trial = SourceTrial(log, start, clock, quiet_ns)
        count = trial.live()
        wanted = trial.content()
        records = sum(map(len, wanted.values()))
        if count < 2:
            raise Malformed(f"{count} batches came: give it more to read, two at the least")
        yield f"{records} records of {len(wanted)} streams came in {count} batches"
        trial.live()
        if trial.content() != wanted:
            raise Malformed("after a restart it read again what is durable: open got positions")
        yield "a restart reads nothing again, and a stop takes less than 5 s"
    finally:
        log.close()
    log, _ = _opened(options.folder, "killed")
    try:
        trial = SourceTrial(log, start, clock, quiet_ns)
        for number in range(options.lives):
            moment = MOMENTS[number % len(MOMENTS)]
            if trial.live(1, moment) == 0:
                break
        trial.live()
        _compare(trial.content(), wanted)
        yield "killed at every step: every record once, in order"
    finally:
        log.close()


def _compare(
    found: dict[tuple[str, int, str], list[tuple[object, ...]]],
    wanted: dict[tuple[str, int, str], list[tuple[object, ...]]],
) -> None:
    for key in sorted({*found, *wanted}):
        ours, theirs = found.get(key, []), wanted.get(key, [])
        if ours == theirs:
            continue
        at = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None)
        place = min(len(ours), len(theirs)) if at is None else at
        raise Malformed(
            f"{key[2]} in {key[0]}/{key[1]}: {len(theirs)} records undisturbed, {len(ours)} after "
            f"kills; they differ from record {place} on: a position must say where to go on, and "
            "poll must go on there"
        )


def _check_sink(options: argparse.Namespace) -> Iterator[str]:
    _check_type(options, "sink")
    yield "the type is found, and refuses unknown options"
    log, disk = _opened(options.folder, "sink")
    try:
        log.create_topic(options.topic)
        for base in range(0, SINK_RECORDS, SINK_BATCH):
            records = [
                Record(offset=0, timestamp_ms=n, key=b"%d" % n, value=b'{"n":%d}' % n)
                for n in range(base, base + SINK_BATCH)
            ]
            log.append(options.topic, append_of_records(records)).result()
        trial = SinkTrial(log, disk, _start(options, "sink"), SystemClock())
        for _ in range(min(options.lives, SINK_LIVES)):
            trial.live(1)
        yield f"killed {min(options.lives, SINK_LIVES)} times after a delivery, before it was noted"
        trial.live()
        if trial.delivered != SINK_RECORDS:
            raise Malformed(f"{trial.delivered} of {SINK_RECORDS} records were delivered")
        if trial.refused:
            raise Malformed(f"{trial.refused} records were refused: all are small JSON objects")
        yield f"{SINK_RECORDS} records were delivered, and a stop takes less than 5 s"
    finally:
        log.close()


if __name__ == "__main__":
    sys.exit(main())
