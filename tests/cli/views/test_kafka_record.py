"""Records as `frazil consume` prints them on a terminal."""

from __future__ import annotations

import pytest

from frazil.cli.kafka.receiving import ReceivedRecord
from frazil.cli.terminal.colors import Colors
from frazil.cli.views.kafka_record import DUMP_BYTES_MAX, pretty_lines


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'{"a": [1]}', ["{", '  "a": [', "    1", "  ]", "}"]),
        (b'{"a": ', ['{"a": ']),
        (b"[" * 100_000, ["[" * 100_000]),
        (b"two\nlines\x1b[31m", ["two", "lines\\e[31m"]),
        (b"", [""]),
        (None, ["null"]),
        (b"\xff\x00A", [f"00000000  {'ff 00 41':<48} ..A"]),
    ],
)
def test_a_value_is_shown_below_its_head(value: bytes | None, expected: list[str]) -> None:
    """JSON indented, control characters escaped, bytes in hexadecimal digits."""
    record = ReceivedRecord(
        topic="t",
        partition=1,
        offset=17,
        timestamp_ms=1,
        key=b"\xfe",
        value=value,
        headers=(("h", b"v"), ("n", None)),
    )
    head, *lines = pretty_lines(Colors(is_on=False))(record).decode().removesuffix("\n").split("\n")
    assert head == "t/1 17  1970-01-01 00:00:00.001  key 0xfe  h=v  n=null"
    assert lines == expected


def test_a_long_binary_value_is_cut() -> None:
    record = ReceivedRecord(
        topic="t",
        partition=0,
        offset=0,
        timestamp_ms=None,
        key=None,
        value=b"\xff" * (DUMP_BYTES_MAX + 5),
        headers=(),
    )
    text = pretty_lines(Colors(is_on=False))(record).decode()
    assert text.startswith("t/0 0\n")
    assert text.endswith("… 5 more bytes; --format hex prints all\n")
