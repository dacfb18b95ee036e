"""Lines of files: compression, invalid lines, halving."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pytest
import zstandard

from frazil.errors import Malformed
from frazil.model import request_of
from frazil.otlp_files import line_reader, read_lines

LINES = [b'{"resourceLogs":[]}', b'{"resourceSpans":[]}']
PLAIN = b"\n".join([LINES[0], b"", b"  ", LINES[1]])


@pytest.mark.parametrize(
    "compressed",
    [
        PLAIN,
        gzip.compress(PLAIN),
        gzip.compress(PLAIN[:10]) + gzip.compress(PLAIN[10:]),
        zstandard.compress(PLAIN),
        zstandard.compress(PLAIN[:10]) + zstandard.compress(PLAIN[10:]),
    ],
    ids=["plain", "gzip", "gzip twice", "zstd", "zstd twice"],
)
def test_compression_is_detected_from_the_content(tmp_path: Path, compressed: bytes) -> None:
    """Empty lines are skipped."""
    path = tmp_path / "file"
    path.write_bytes(compressed)
    lines = list(read_lines(str(path)))
    assert [read.text for read in lines] == LINES
    assert [str(read.location) for read in lines] == [f"{path}:1", f"{path}:4"]
    assert lines[-1].position == len(compressed)


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_a_truncated_file_ends_with_an_error(tmp_path: Path, compress: object) -> None:
    """After the lines that could be read."""
    assert callable(compress)
    whole = compress(b"".join(b'{"resourceLogs":[%d]}\n' % n for n in range(10_000)))
    path = tmp_path / "file"
    path.write_bytes(whole[: len(whole) // 2])
    *lines, last = read_lines(str(path))
    assert all(read.error is None for read in lines)
    assert last.error is not None
    assert "cannot read the rest" in last.error


def test_a_missing_file_is_malformed(tmp_path: Path) -> None:
    with pytest.raises(Malformed, match=r"cannot read .*gone"):
        list(read_lines(str(tmp_path / "gone")))


def test_a_line_that_is_too_long_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_reader, "LINE_BYTES_MAX", 100)
    path = tmp_path / "file"
    path.write_bytes(b"x" * 101 + b"y" * 500 + b"\n" + LINES[0] + b"\n")
    first, second = read_lines(str(path))
    assert first.error == "the line is longer than 100 bytes"
    assert second.text == LINES[0]
    assert second.location.number == 2


def test_a_dash_reads_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(LINES[0]))))
    (read,) = read_lines("-")
    assert read.text == LINES[0]
    assert str(read.location) == "standard input:1"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "needs one of resourceLogs"),
        (b'{"resourceLogs":[],"resourceSpans":[]}', "needs one of"),
        (b'{"a":' * 100_000, "not JSON|nested"),
        (b'"\xff"', "not JSON|not a JSON object"),
    ],
)
def test_a_line_that_is_not_a_request_is_malformed(text: bytes, why: str) -> None:
    with pytest.raises(Malformed, match=why):
        request_of(text)


def test_requests_are_halved_down_to_one_record() -> None:
    """Resources, then scopes, then records; both halves keep the outer fields."""
    point = {"asInt": "1"}
    metric = {"name": "m", "sum": {"dataPoints": [point, point]}}
    scope = {"scope": {"name": "s"}, "metrics": [metric, metric]}
    request = {"resourceMetrics": [{"resource": {"r": 1}, "scopeMetrics": [scope, scope]}] * 3}
    pieces = [request_of(json.dumps(request).encode())]
    assert pieces[0].record_count == 3 * 2 * 2 * 2
    done = []
    while pieces:
        piece = pieces.pop()
        halves = piece.halves()
        if halves is None:
            done.append(piece)
        else:
            assert sum(half.record_count for half in halves) == piece.record_count
            pieces += halves
    assert len(done) == 12
    smallest = {"resource": {"r": 1}, "scopeMetrics": [{**scope, "metrics": [metric]}]}
    assert all(piece.content == {"resourceMetrics": [smallest]} for piece in done)


def test_field_names_of_the_proto_files_are_accepted() -> None:
    text = b'{"resource_logs":[{"scope_logs":[{"log_records":[{},{}]}]}]}'
    request = request_of(text)
    assert (request.signal, request.record_count) == ("logs", 2)
    halves = request.halves()
    assert halves is not None
    assert [half.record_count for half in halves] == [1, 1]
