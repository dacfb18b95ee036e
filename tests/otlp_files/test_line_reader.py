"""Lines of files: read whatever they are packed in, judged one by one, cut where too large."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pytest
import zstandard

from frazil.errors import Malformed
from frazil.otlp_files import line_reader, read_lines, request_of

LINES = [b'{"resourceLogs":[]}', b'{"resourceSpans":[]}']
PLAIN = b"\n".join([LINES[0], b"", b"  ", LINES[1]])


@pytest.mark.parametrize(
    "packed",
    [
        PLAIN,
        gzip.compress(PLAIN),
        gzip.compress(PLAIN[:10]) + gzip.compress(PLAIN[10:]),
        zstandard.compress(PLAIN),
        zstandard.compress(PLAIN[:10]) + zstandard.compress(PLAIN[10:]),
    ],
    ids=["plain", "gzip", "gzip twice", "zstd", "zstd twice"],
)
def test_any_packing(tmp_path: Path, packed: bytes) -> None:
    """What a file is, it says itself; its name does not matter. Empty lines are none."""
    path = tmp_path / "file"
    path.write_bytes(packed)
    found = list(read_lines(str(path)))
    assert [read.text for read in found] == LINES
    assert [str(read.place) for read in found] == [f"{path}:1", f"{path}:4"]
    assert found[-1].position == len(packed)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_file_that_ends_too_early(tmp_path: Path, pack: object) -> None:
    """What could be read is there, and the end is told."""
    assert callable(pack)
    whole = pack(b"".join(b'{"resourceLogs":[%d]}\n' % n for n in range(10_000)))
    path = tmp_path / "file"
    path.write_bytes(whole[: len(whole) // 2])
    *lines, last = read_lines(str(path))
    assert all(read.trouble is None for read in lines)
    assert last.trouble is not None
    assert "cannot be read any further" in last.trouble


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """Is a wrong use."""
    with pytest.raises(Malformed, match=r"cannot read .*gone"):
        list(read_lines(str(tmp_path / "gone")))


def test_a_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is left out, and the next one is read."""
    monkeypatch.setattr(line_reader, "LINE_BYTES_MAX", 100)
    path = tmp_path / "file"
    path.write_bytes(b"x" * 101 + b"y" * 500 + b"\n" + LINES[0] + b"\n")
    first, second = read_lines(str(path))
    assert first.trouble == "the line is longer than 100 bytes"
    assert second.text == LINES[0]
    assert second.place.number == 2


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """Is called by its name."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(LINES[0]))))
    (read,) = read_lines("-")
    assert read.text == LINES[0]
    assert str(read.place) == "standard input:1"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"{", "not JSON"),
        (b"[]", "not an object"),
        (b"{}", "needs one of resourceLogs"),
        (b'{"resourceLogs":[],"resourceSpans":[]}', "needs one of"),
        (b'{"a":' * 100_000, "not JSON|nested"),
        (b'"\xff"', "not JSON|not an object"),
    ],
)
def test_lines_that_are_no_request(text: bytes, why: str) -> None:
    """Each says why."""
    with pytest.raises(Malformed, match=why):
        request_of(text)


def test_cut_in_two_until_one_is_left() -> None:
    """Resources, then scopes, then records; what is said once is said in both halves."""
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


def test_names_of_the_proto_files() -> None:
    """Are taken as well, as the node takes them."""
    text = b'{"resource_logs":[{"scope_logs":[{"log_records":[{},{}]}]}]}'
    request = request_of(text)
    assert (request.signal, request.record_count) == ("logs", 2)
    halves = request.halves()
    assert halves is not None
    assert [half.record_count for half in halves] == [1, 1]
