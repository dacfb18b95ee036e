"""Print the records of a topic of the node, or of any Kafka with --brokers: from the first to the
last, then exit. --follow waits for new ones; Ctrl-C ends it.

With --group it reads as a member of a consumer group: from the committed offset on, and commits
what it has printed, also on Ctrl-C. --from then applies to partitions without a committed offset;
`frazil groups reset` moves committed ones.

On a terminal each record has a line with its partition, offset, time, key and headers, and JSON
values are indented; otherwise only values are printed, byte by byte. --format json prints one
object per record with everything; `frazil produce --format json` sends such lines."""

from __future__ import annotations

import argparse
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING

from frazil.cli.kafka.brokers import add_brokers, brokers_of
from frazil.cli.options import positive
from frazil.cli.terminal.colors import DIM, Colors
from frazil.cli.times import moment
from frazil.errors import Malformed
from frazil.model import SystemClock

if TYPE_CHECKING:
    from frazil.cli.kafka.receiving import RecordReceiver, StartPosition
    from frazil.cli.views.kafka_record import RecordFormatter

HELP = "Print the records of a topic"
FORMATS = ("text", "json", "hex")
ENDS = ("start", "end")
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("topic", metavar="TOPIC", help="topic to read")
    add_brokers(parser)
    add(
        "--from",
        dest="start",
        default="start",
        metavar="WHERE",
        help="start (default), end, an offset, or a time: 15m ago, 2026-11-16T10:00Z",
    )
    add("--follow", "-f", action="store_true", help="wait for new records; --from end implies it")
    add("--count", type=positive, metavar="N", help="stop after so many records")
    add("--group", metavar="NAME", help="read as a member of this consumer group, and commit")
    add("--partition", type=_number, metavar="N", help="only this partition")
    add(
        "--format",
        choices=FORMATS,
        default="text",
        help="text (default), json with all fields, hex for binary values",
    )
    add("--key-separator", metavar="TEXT", help="print keys, too, and this between key and value")


def run(options: argparse.Namespace) -> int:
    """Print until the end, the count, or Ctrl-C."""
    from frazil.cli.kafka.receiving import RecordReceiver

    start, line_of = _start(options), _formatter(options)
    receiver = RecordReceiver(
        brokers_of(options),
        options.topic,
        start,
        group=options.group,
        partition=options.partition,
        follows=options.follow or start.kind == "end",
        clock=SystemClock(),
    )
    before = {each: signal.getsignal(each) for each in STOP_SIGNALS}

    def stop(number: int, _: FrameType | None) -> None:
        receiver.stop()
        signal.signal(number, before[signal.Signals(number)])  # the second one ends it at once

    for each in STOP_SIGNALS:
        signal.signal(each, stop)
    count = 0
    try:
        count = _print_records(receiver, line_of, options)
    finally:
        receiver.close()
        for each, handler in before.items():
            signal.signal(each, handler)
    if sys.stdout.isatty():
        committed = "" if options.group is None else f", committed for group {options.group}"
        note = f"{count:,} record{'s' * (count != 1)}{committed}"
        print(Colors.of(sys.stderr)(note, DIM), file=sys.stderr)
    return 0


def _print_records(
    receiver: RecordReceiver, line_of: RecordFormatter, options: argparse.Namespace
) -> int:
    """Print records. Returns how many."""
    out = sys.stdout.buffer
    # A group must not commit what is still in our buffer.
    is_prompt = sys.stdout.isatty() or options.follow or options.group is not None
    count = 0
    for record in receiver.records():
        out.write(line_of(record))
        if is_prompt:
            out.flush()
        receiver.done(record)
        count += 1
        if count == options.count:
            break
    out.flush()
    return count


def _formatter(options: argparse.Namespace) -> RecordFormatter:
    from frazil.cli.views.kafka_record import hex_lines, json_line, pretty_lines, raw_lines

    if options.format == "json":
        if options.key_separator is not None:
            raise Malformed("--key-separator is for text and hex; JSON lines have a field key")
        return json_line
    if options.format == "hex":
        return hex_lines(options.key_separator)
    if sys.stdout.isatty() and options.key_separator is None:
        return pretty_lines(Colors.of(sys.stdout))
    return raw_lines(options.key_separator)


def _start(options: argparse.Namespace) -> StartPosition:
    from frazil.cli.kafka.receiving import StartPosition

    text = options.start
    if options.group is not None:
        if options.partition is not None:
            raise Malformed("the group assigns partitions; use --partition without --group")
        if text not in ENDS:
            raise Malformed(
                f"--from {text} is not for groups; run `frazil groups reset {options.group} "
                f"--topic {options.topic} --to {text}` first"
            )
    if text in ENDS:
        return StartPosition(kind=text)
    if text.isdecimal():
        return StartPosition(kind="offset", number=int(text))
    when = moment(text, SystemClock())
    return StartPosition(kind="time", number=round(when.timestamp() * 1000))


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} must be the number of a partition")
    return int(text)
