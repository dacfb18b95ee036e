"""What only HTTP has: headers, encodings, methods, paths."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import zstandard

from tests.conformance.cases import BODY_BYTES_MAX, log, logs
from tests.conformance.clients import JSON, PROTOBUF


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpCase:
    """One HTTP request and its response. `answered` are headers that must be present."""

    row: str
    status: int
    pack: Callable[[bytes], bytes] = bytes
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str | None = PROTOBUF
    method: str = "POST"
    path: str = "/v1/logs"
    stored: int = 0
    says: str = ""
    answer_type: str | None = PROTOBUF
    answered: dict[str, str] = field(default_factory=dict)


def encoded(name: str, pack: Callable[[bytes], bytes], row: str = "D5") -> HttpCase:
    """Return a body in a supported encoding."""
    return HttpCase(row=row, status=200, headers={"Content-Encoding": name}, pack=pack, stored=1)


def spoilt(
    name: str, pack: Callable[[bytes], bytes], status: int = 400, row: str = "D6"
) -> HttpCase:
    """Return a body that does not match its encoding, or is far too large."""
    return HttpCase(row=row, status=status, headers={"Content-Encoding": name}, pack=pack)


def deflated(body: bytes) -> bytes:
    """Return raw deflate without the standard's wrapper, as some clients send it."""
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


def two_members(body: bytes) -> bytes:
    return gzip.compress(body[:10]) + gzip.compress(body[10:])


def two_frames(body: bytes) -> bytes:
    return zstandard.compress(body[:10]) + zstandard.compress(body[10:])


BOMB = bytes(25 * BODY_BYTES_MAX)
OK_JSON = HttpCase(row="D12", status=200, content_type=JSON, answer_type=JSON)

HTTP_CASES: dict[str, HttpCase] = {
    "protobuf": HttpCase(row="D12", status=200, stored=1),
    "protobuf by its other name": HttpCase(
        row="D12",
        status=200,
        content_type="application/protobuf",
        stored=1,
    ),
    "protobuf with a parameter": HttpCase(
        row="D12", status=200, content_type="Application/X-Protobuf; v=1", stored=1
    ),
    "no content type": HttpCase(row="D12", status=415, content_type=None, answer_type=JSON),
    "text": HttpCase(row="D12", status=415, content_type="text/plain", answer_type=JSON),
    "a form": HttpCase(
        row="D12",
        status=415,
        content_type="application/x-www-form-urlencoded",
        answer_type=JSON,
        says="application/x-protobuf",
    ),
    "GET": HttpCase(
        row="D12",
        status=405,
        method="GET",
        content_type=None,
        answered={"allow": "POST"},
        answer_type=JSON,
    ),
    "PUT": HttpCase(row="D12", status=405, method="PUT", answered={"allow": "POST"}),
    "DELETE": HttpCase(row="D12", status=405, method="DELETE", answered={"allow": "POST"}),
    "another path": HttpCase(row="D12", status=404, path="/v1/profiles", says="/v1/logs"),
    "no path": HttpCase(row="D12", status=404, path="/"),
    "a path below": HttpCase(row="D12", status=404, path="/v1/logs/x"),
    "a path with dots": HttpCase(row="D12", status=404, path="/v1/../v1/logs/"),
    "a path in another case": HttpCase(row="D12", status=404, path="/V1/LOGS"),
    "a query behind the path": HttpCase(row="D12", status=200, path="/v1/logs?a=b", stored=1),
    "gzip": encoded("gzip", gzip.compress),
    "gzip in capitals": encoded("GZIP", gzip.compress),
    "gzip in two members": encoded("gzip", two_members, row="D6"),
    "zstd": encoded("zstd", zstandard.compress),
    "zstd in two frames": encoded("zstd", two_frames, row="D6"),
    "deflate": encoded("deflate", zlib.compress),
    "deflate without wrapping": encoded("deflate", deflated),
    "identity": encoded("identity", bytes),
    "gzip twice": HttpCase(
        row="D6", status=400, headers={"Content-Encoding": "gzip, gzip"}, pack=gzip.compress
    ),
    "snappy": HttpCase(
        row="D5",
        status=415,
        headers={"Content-Encoding": "snappy"},
        answered={"accept-encoding": "gzip, zstd, deflate"},
    ),
    "lz4": HttpCase(row="D5", status=415, headers={"Content-Encoding": "lz4"}),
    "an unknown encoding": HttpCase(
        row="D5", status=415, headers={"Content-Encoding": "magic"}, says="magic"
    ),
    "gzip that is none": spoilt("gzip", bytes),
    "gzip cut": spoilt("gzip", lambda body: gzip.compress(body)[:-5]),
    "gzip with a wrong sum": spoilt("gzip", lambda b: gzip.compress(b)[:-8] + bytes(8)),
    "gzip with bytes behind": spoilt("gzip", lambda body: gzip.compress(body) + b"more"),
    "gzip of 10,000 members": spoilt("gzip", lambda _: gzip.compress(b"") * 10_000),
    "gzip of nothing": HttpCase(
        row="D6",
        status=200,
        headers={"Content-Encoding": "gzip"},
        pack=lambda _: gzip.compress(b""),
    ),
    "no gzip at all": spoilt("gzip", lambda _: b""),
    "zstd that is none": spoilt("zstd", bytes),
    "zstd cut": spoilt("zstd", lambda body: zstandard.compress(body)[:-5]),
    "zstd with bytes behind": spoilt("zstd", lambda body: zstandard.compress(body) + b"more"),
    "deflate that is none": spoilt("deflate", lambda _: b"\xff" * 20),
    "deflate cut": spoilt("deflate", lambda body: zlib.compress(body)[:-5]),
    "a gzip bomb": spoilt("gzip", lambda _: gzip.compress(BOMB), 413, "D5"),
    "a zstd bomb": spoilt("zstd", lambda _: zstandard.compress(BOMB), 413, "D5"),
    "a deflate bomb": spoilt("deflate", lambda _: zlib.compress(BOMB), 413, "D5"),
    "a bare deflate bomb": spoilt("deflate", lambda _: deflated(BOMB), 413, "D5"),
    "a body above the limit": HttpCase(
        row="D2", status=413, pack=lambda _: bytes(BODY_BYTES_MAX + 1), says="ingest.body_bytes_max"
    ),
    "malformed, answered in JSON": HttpCase(
        row="D7",
        status=400,
        content_type=JSON,
        pack=lambda _: b"{",
        answer_type=JSON,
        says='"code": 3',
    ),
}


def request_body(number: int) -> bytes:
    """Return a valid request before compression."""
    return logs(log(number))
