"""Send each line of standard input, or of a file, as a record to a topic of the node, or of any
Kafka with --brokers. Prints how many records were acknowledged, that is durable.

An invalid line is reported with its number, and the rest is sent. Exits with 1 if a line was
invalid or not acknowledged. A line of `--format json` is an object with value, and if need be key,
headers, partition and time; value_hex and key_hex are for bytes. `frazil consume --format json`
prints such lines."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import IO, TYPE_CHECKING

from frazil.cli.kafka.brokers import add_brokers, brokers_of, pair_of
from frazil.cli.options import add_json
from frazil.errors import Malformed

if TYPE_CHECKING:
    from frazil.cli.kafka.record_input import InputRecord, LineParser
    from frazil.cli.kafka.sending import RecordSender

HELP = "Send lines as records to a topic"
FAILED = 1
INTERRUPTED = 130
FORMATS = ("text", "json")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
REPORTED_MAX = 10
"""Lines that are reported one by one; the rest is counted."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("topic", metavar="TOPIC", help="topic; a node creates it if there is none")
    add("file", nargs="?", metavar="FILE", default="-", help="default: -, standard input")
    add_brokers(parser)
    add("--format", choices=FORMATS, default="text", help="what a line is (text)")
    add("--key-separator", metavar="TEXT", help="a line of text is key, this, value")
    add("--key", help="key of all records without one")
    add("--header", action="append", default=[], metavar="NAME=VALUE", help="repeatable")
    add("--partition", type=int, metavar="N", help="send all records there (default: by key)")
    add("--compression", choices=CODECS, default="zstd", help="codec of batches (zstd)")
    add_json(parser, "print one JSON object at the end: what was acknowledged")


def run(options: argparse.Namespace) -> int:
    """Send all lines. Returns 1 if some were invalid or not acknowledged."""
    from frazil.cli.kafka.record_input import STDIN, json_record, read_input, text_parser
    from frazil.cli.kafka.sending import RecordSender

    if options.format == "json" and options.key_separator is not None:
        raise Malformed("--key-separator is for text; JSON lines have a field key")
    if options.partition is not None and options.partition < 0:
        raise Malformed(f"--partition {options.partition} must not be negative")
    headers = [(name, v.encode()) for name, v in (pair_of(h, "--header") for h in options.header)]
    parse = json_record if options.format == "json" else text_parser(options.key_separator)
    report = FailureReport()
    file = read_input(options.file)
    with nullcontext() if options.file == STDIN else file:
        sender = RecordSender(brokers_of(options), options.topic, options.compression, report)
        code = 0
        try:
            if options.file == STDIN and sys.stdin.isatty():
                print("Type records, one per line; Ctrl-D ends.", file=sys.stderr)
            for location, record in _records(file, parse, sender):
                key = options.key.encode() if options.key and record.key is None else record.key
                partition = record.partition if options.partition is None else options.partition
                record = replace(
                    record, key=key, partition=partition, headers=[*headers, *record.headers]
                )
                sender.send(record, location)
        except KeyboardInterrupt:
            code = INTERRUPTED
        finally:
            try:
                sender.flush()
            finally:
                report.close()
                _print_totals(sender.acknowledged, sender.failed, is_json=options.json)
    return code or (FAILED if sender.failed else 0)


def _records(
    file: IO[bytes], parse: LineParser, sender: RecordSender
) -> Iterator[tuple[str, InputRecord]]:
    """Yield valid lines with their location; reject the others."""
    from frazil.cli.kafka.record_input import lines_of

    for number, line in enumerate(lines_of(file), 1):
        location = f"line {number}"
        try:
            record = parse(line)
        except Malformed as error:
            sender.reject(location, str(error))
            continue
        if record is not None:
            yield location, record


class FailureReport:
    """Prints which lines failed and why, the first ones only."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, location: str, reason: str) -> None:
        self._count += 1
        if self._count <= REPORTED_MAX:
            print(f"{location}: {reason}", file=sys.stderr)

    def close(self) -> None:
        if self._count > REPORTED_MAX:
            print(f"… and {self._count - REPORTED_MAX:,} more", file=sys.stderr)


def _print_totals(acknowledged: int, failed: int, *, is_json: bool) -> None:
    if is_json:
        print(json.dumps({"acknowledged": acknowledged, "failed": failed}))
        return
    print(f"{acknowledged:,} record{'s' * (acknowledged != 1)} acknowledged.")
    if failed:
        print(f"{failed:,} failed.", file=sys.stderr)
