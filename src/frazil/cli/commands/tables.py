"""List the keyed tables of a node; describe one; look up, put, update and delete rows; show their
changes. `frazil sql` creates and drops tables: CREATE TABLE t (id BIGINT, …, PRIMARY KEY (id)).

A key is the value of the key column, or a JSON array if there are several: --key '["eu",17]'."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from io import BufferedReader
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlencode

from frazil.cli.connection import add_where, connected
from frazil.cli.options import add_json, inherit_flags, positive
from frazil.cli.terminal.cells import text_of
from frazil.cli.terminal.colors import DIM, Colors
from frazil.cli.terminal.table import headings_of, print_facts, print_table, record_lines
from frazil.cli.terminal.text_width import safe, terminal_width
from frazil.cli.views.tables import (
    COLUMNS,
    HEADINGS,
    PARTITIONS,
    change_line,
    column_row,
    columns_of,
    table_row,
    version_headings,
    version_row,
    watermarks_row,
)
from frazil.errors import (
    Malformed,
    Overloaded,
    Rejected,
    TooLarge,
    Unavailable,
    Unresolved,
)
from frazil.model import MiB, SystemClock, SystemRand

if TYPE_CHECKING:
    from frazil.client import Client

HELP = "List keyed tables; look up, put and delete rows, show their changes"
ENDS = ("start", "end")
OPERATIONS = {"put": "upsert", "update": "update", "delete": "delete"}
"""What the API calls the verbs that write."""
PORTION_BYTES = MiB
"""Lines of one request, about."""
LINE_BYTES_MAX = 64 * MiB
TRIES_MAX = 12
RETRY_S, RETRY_S_MAX = 0.5, 8.0
"""Pause after the first try, doubled after each: a minute in all, in which a node has restarted."""
PAGE_ROWS = 1000
POLL_S = 0.5
LINE_OF_REQUEST = re.compile(r"\Aline (\d{1,10})")

Fact = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_where(parser, has_data=False)
    add_json(parser, "print one JSON object per table")
    verbs = parser.add_subparsers(metavar="VERB", dest="what")

    def add_verb(name: str, help_text: str, json_text: str) -> argparse.ArgumentParser:
        verb = verbs.add_parser(name, help=help_text, description=help_text)
        verb.add_argument("table", metavar="TABLE")
        add_where(verb, has_data=False)
        add_json(verb, json_text)
        return verb

    add_verb("describe", "Show columns and watermarks of a table", "print one JSON object")
    get = add_verb("get", "Print the row of a key", "print one JSON object")
    _add_key(get)
    get.add_argument(
        "--as-of", type=int, metavar="OFFSET", help="as of this offset of its partition"
    )
    history = add_verb(
        "history",
        "Print the versions of a row that are still known, the oldest first",
        "print one JSON object per version",
    )
    _add_key(history)
    changes = add_verb(
        "changes",
        "Print changes in the order of each partition, then exit. --follow waits for new ones; "
        "Ctrl-C ends it.",
        "print one JSON object per change",
    )
    changes.add_argument(
        "--from",
        dest="start",
        default="start",
        metavar="WHERE",
        help="start (default: the oldest that is known), end, or an offset",
    )
    changes.add_argument(
        "--follow", "-f", action="store_true", help="wait for new changes; --from end implies it"
    )
    changes.add_argument("--count", type=positive, metavar="N", help="stop after so many changes")
    changes.add_argument("--partition", type=int, metavar="N", help="only this partition")
    for name, help_text in (
        ("put", "Put rows, in place of those with the same keys: a JSON object per line"),
        ("update", "Set columns of rows that exist: JSON lines with the key and these columns"),
        ("delete", "Delete rows: JSON lines with their keys, or the one row of --key"),
    ):
        verb = add_verb(name, help_text, "print one JSON object at the end: what is durable")
        verb.add_argument(
            "file", nargs="?", metavar="FILE", default="-", help="default: -, standard input"
        )
        if name == "delete":
            _add_key(verb, is_required=False)
    inherit_flags(parser, verbs)


def _add_key(parser: argparse.ArgumentParser, *, is_required: bool = True) -> None:
    parser.add_argument(
        "--key", required=is_required, help="the key; a JSON array if it has several columns"
    )


def run(options: argparse.Namespace) -> int:
    verbs = {
        "describe": _describe,
        "get": _get,
        "history": _history,
        "changes": _changes,
        **dict.fromkeys(OPERATIONS, _write),
    }
    return verbs.get(options.what, _list)(options, connected(options))


def _path(options: argparse.Namespace) -> str:
    return f"/api/v1/tables/{quote(options.table, safe='')}"


def _list(options: argparse.Namespace, node: Client) -> int:
    tables = node.get("/api/v1/tables")["tables"]
    when_empty = (
        "no keyed tables yet; `frazil sql` creates one: CREATE TABLE t (id BIGINT, name TEXT, "
        "PRIMARY KEY (id))"
    )
    print_facts(tables, HEADINGS, table_row, when_empty, is_json=options.json)
    return 0


def _describe(options: argparse.Namespace, node: Client) -> int:
    table = node.get(_path(options))
    if options.json:
        print(json.dumps(table))
        return 0
    status = table["status"]
    print(
        f"{table['table']}: {status['keys']:,} rows, key {', '.join(table['key'])}, topic "
        f"{table['topic']}, {status['state'].replace('_', ' ')}"
    )
    if status["trouble"]:
        print(safe(status["trouble"]))
    print_table(COLUMNS, [column_row(each, table["key"]) for each in table["columns"]])
    print_table(PARTITIONS, [watermarks_row(each) for each in status["partitions"]])
    return 0


def _get(options: argparse.Namespace, node: Client) -> int:
    answer = node.get(f"{_path(options)}/rows", {"key": options.key, "as_of": options.as_of})
    if options.json:
        _print_json(answer["row"])
    else:
        row = answer["row"]
        columns = terminal_width(sys.stdout) if sys.stdout.isatty() else None
        cells = [text_of(value) for value in row.values()]
        for line in record_lines(1, headings_of(*row), cells, columns, Colors.of(sys.stdout)):
            print(line)
    return 0


def _history(options: argparse.Namespace, node: Client) -> int:
    versions = node.get(f"{_path(options)}/history", {"key": options.key})["versions"]
    if options.json:
        for version in versions:
            _print_json(version)
    elif versions:
        columns = columns_of(versions[0])
        rows = [version_row(version, columns) for version in versions]
        print_table(version_headings(columns), rows)
    else:
        print("no version of this row is known")
    return 0


def _print_json(fact: Fact) -> None:
    print(json.dumps(fact, ensure_ascii=False), flush=True)


def _changes(options: argparse.Namespace, node: Client) -> int:
    columns = terminal_width(sys.stdout) if sys.stdout.isatty() else None
    paint = Colors.of(sys.stdout)
    follows = options.follow or options.start == "end"
    reader = ChangeReader(node, options)
    try:
        for number, change in enumerate(reader.changes(follows=follows), 1):
            if options.json:
                _print_json(change)
            else:
                print(change_line(change, columns, paint), flush=True)
            if number == options.count:
                break
    except KeyboardInterrupt:
        if not follows:
            raise
    return 0


class ChangeReader:
    """The changes of a table, each once, also if the node is away in between."""

    def __init__(self, node: Client, options: argparse.Namespace) -> None:
        self._node = node
        self._path = _path(options)
        self._clock = SystemClock()
        self._limit = PAGE_ROWS
        found = node.get(self._path)["status"]
        known = {each["partition"]: each for each in found["partitions"]}
        if not known:
            raise Unavailable(f"table {options.table} cannot be read: {found['trouble']}")
        if options.partition is not None:
            if options.partition not in known:
                raise Malformed(f"table {options.table} has {len(known)} partitions, from 0 on")
            known = {options.partition: known[options.partition]}
        self._next = {number: _start(options, known[number], len(known)) for number in known}
        """The next offset of each partition."""
        self._written = {number: each["written"] for number, each in known.items()}
        """What there was at the start."""

    def changes(self, *, follows: bool) -> Iterator[Fact]:
        """Yield changes up to the present, or for ever."""
        is_lost = False
        while True:
            count = 0
            try:
                for partition in self._next:
                    end = None if follows else self._written[partition]
                    for change in self._of_partition(partition, end):
                        count += 1
                        yield {"_log_partition": partition, **change}
                if is_lost:
                    _note("reconnected; continuing where it stopped")
                is_lost = False
            except (Unavailable, Overloaded):
                if not follows:
                    raise
                if not is_lost:
                    _note("connection lost; reconnecting (Ctrl-C stops)")
                is_lost = True
            if not follows:
                return
            if not count:
                self._clock.sleep(POLL_S)

    def _of_partition(self, partition: int, end: int | None) -> Iterator[Fact]:
        while True:
            answer = self._page(partition, end)
            self._next[partition] = answer["next"]
            yield from answer["changes"]
            if answer["next"] in (answer["end"], end):
                return

    def _page(self, partition: int, end: int | None) -> Any:
        """Return some changes; fewer if the rows are large."""
        while True:
            begin = self._next[partition]
            asked = {"partition": partition, "from": begin, "to": end, "limit": self._limit}
            try:
                return self._node.get(f"{self._path}/changes", asked)
            except TooLarge:
                if self._limit == 1:
                    raise
                self._limit //= 2


def _start(options: argparse.Namespace, partition: Fact, count: int) -> int:
    """Return the first offset to read."""
    if options.start in ENDS:
        return int(partition["first" if options.start == "start" else "indexed"])
    if not options.start.isdecimal():
        raise Malformed(f"--from {options.start} is none of {', '.join(ENDS)}, and no offset")
    if count > 1:
        raise Malformed(f"--from {options.start} is an offset of one partition; add --partition")
    return int(options.start)


def _note(text: str) -> None:
    print(Colors.of(sys.stderr)(text, DIM), file=sys.stderr, flush=True)


def _write(options: argparse.Namespace, node: Client) -> int:
    if options.what == "delete" and options.key is not None:
        if options.file != "-":
            raise Malformed("keys are given both in a file and with --key; use one of them")
        query = urlencode({"key": options.key})
        answer = node.call("DELETE", f"{_path(options)}/rows?{query}")
        _print_written(1, answer["token"], is_json=options.json)
        return 0
    from frazil.cli.kafka.record_input import STDIN, read_input

    if options.file == STDIN and sys.stdin.isatty():
        print("Type one JSON object per line; Ctrl-D ends.", file=sys.stderr)
    sender = RowSender(node, options)
    file = read_input(options.file)
    with nullcontext() if options.file == STDIN else file:
        try:
            for first, lines in portions_of(cast(BufferedReader, file)):
                sender.send(first, lines)
        finally:
            _print_written(sender.count, sender.token, is_json=options.json)
    return 0


def _print_written(count: int, token: Fact, *, is_json: bool) -> None:
    if is_json:
        print(json.dumps({"changes": count, "token": token}))
    else:
        print(f"{count:,} change{'s' * (count != 1)} written.")


def portions_of(file: BufferedReader) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines, with the number of the first: those of a pipe as soon as they are
    there."""
    number, rest = 1, bytearray()
    while chunk := file.read1(PORTION_BYTES):
        begin, end = 0, chunk.rfind(b"\n") + 1
        if end:
            lines = bytes(rest) + chunk[:end]
            yield number, lines
            number += lines.count(b"\n")
            begin, rest = end, bytearray()
        rest += chunk[begin:]
        if len(rest) > LINE_BYTES_MAX:
            raise TooLarge(f"line {number} is longer than {LINE_BYTES_MAX // MiB} MiB; split it")
    if rest:
        yield number, bytes(rest)


class RowSender:
    """Writes portions one after the other. What has no response is repeated, and stored once."""

    def __init__(self, node: Client, options: argparse.Namespace) -> None:
        self.count = 0
        """Changes that are durable."""
        self.token: Fact = {"table": options.table, "offsets": {}}
        self._node = node
        self._target = f"{_path(options)}/rows?operation={OPERATIONS[options.what]}"
        self._clock = SystemClock()
        self._run_id = SystemRand().randbytes(16).hex()

    def send(self, first: int, lines: bytes) -> None:
        """Write lines, of which the first has this number."""
        if not lines.strip():
            return
        try:
            answer = json.loads(self._answer(f"{self._run_id}/{first}", lines))
        except Malformed as error:
            raise Rejected(
                LINE_OF_REQUEST.sub(lambda m: f"line {int(m[1]) + first - 1}", str(error), count=1)
            ) from None
        self.count += answer["rows"]
        self.token["offsets"] |= answer["token"]["offsets"]

    def _answer(self, idempotency_key: str, lines: bytes) -> bytes:
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": idempotency_key}
        is_sent = self.count > 0
        for attempt in range(TRIES_MAX - 1):
            try:
                return self._node.exchange(
                    "POST", self._target, lines, headers=headers, is_write=True
                )
            except (Overloaded, Unavailable, Unresolved) as error:
                is_sent = is_sent or isinstance(error, Unresolved)
                if isinstance(error, Unavailable) and not is_sent:
                    raise
            self._clock.sleep(min(RETRY_S_MAX, RETRY_S * 2.0**attempt))
        return self._node.exchange("POST", self._target, lines, headers=headers, is_write=True)
