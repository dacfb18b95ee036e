"""Buckets: a small S3 server on loopback, for the real clients of Arrow and PyIceberg.

It has what those use: objects, ranges, multipart uploads, which are visible once completed, and
lists. It accepts any credentials.
"""

from __future__ import annotations

import hashlib
import threading
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from types import TracebackType
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

TIME = "2026-11-16T00:00:00.000Z"


class Buckets:
    """The server. `objects` maps `bucket/key` to bytes."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.numbers = count(1)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.buckets = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Buckets:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # A response is sent at once, in one write.
    disable_nagle_algorithm = True
    wbufsize = -1

    def handle_expect_100(self) -> bool:
        is_fine = super().handle_expect_100()
        self.wfile.flush()  # the client waits for it before it sends the rest
        return is_fine

    def log_message(self, format: str, *args: object) -> None:
        """Write no log."""

    @property
    def buckets(self) -> Buckets:
        found = self.server.buckets  # type: ignore[attr-defined]
        assert isinstance(found, Buckets)
        return found

    def do_GET(self) -> None:
        name, query = self._requested()
        if "/" not in name:
            self._list(name, query)
            return
        data = self.buckets.objects.get(name)
        if data is None:
            self._fail(404, "NoSuchKey")
            return
        byte_range = self.headers.get("Range")
        if byte_range is None:
            self._answer(200, data)
            return
        begin, _, end = byte_range.removeprefix("bytes=").partition("-")
        part = data[int(begin) : int(end) + 1] if end else data[int(begin) :]
        last = int(begin) + len(part) - 1
        self._answer(206, part, {"Content-Range": f"bytes {begin}-{last}/{len(data)}"})

    def do_HEAD(self) -> None:
        name, _ = self._requested()
        data = self.buckets.objects.get(name)
        if data is None and "/" in name:
            self._answer(404, b"")
            return
        self._answer(200, data or b"", is_head=True)

    def do_PUT(self) -> None:
        name, query = self._requested()
        body = self._body()
        if "uploadId" in query:
            parts = self.buckets.uploads[query["uploadId"]]
            parts[int(query["partNumber"])] = body
        elif "/" in name:
            self.buckets.objects[name] = body
        self._answer(200, b"", {"ETag": _tag(body)})

    def do_POST(self) -> None:
        name, query = self._requested()
        self._body()
        bucket, _, key = name.partition("/")
        if "uploads" in query:
            upload = str(next(self.buckets.numbers))
            self.buckets.uploads[upload] = {}
            self._xml(
                f"<InitiateMultipartUploadResult><Bucket>{bucket}</Bucket><Key>{escape(key)}</Key>"
                f"<UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            )
            return
        parts = self.buckets.uploads.pop(query["uploadId"])
        data = b"".join(part for _, part in sorted(parts.items()))
        self.buckets.objects[name] = data
        self._xml(
            f"<CompleteMultipartUploadResult><Bucket>{bucket}</Bucket><Key>{escape(key)}</Key>"
            f"<ETag>{escape(_tag(data))}</ETag></CompleteMultipartUploadResult>"
        )

    def do_DELETE(self) -> None:
        name, query = self._requested()
        if "uploadId" in query:
            self.buckets.uploads.pop(query["uploadId"], None)
        else:
            self.buckets.objects.pop(name, None)
        self._answer(204, b"")

    def _list(self, bucket: str, query: dict[str, str]) -> None:
        prefix = query.get("prefix", "")
        begin = f"{bucket}/{prefix}"
        found = sorted(name for name in list(self.buckets.objects) if name.startswith(begin))
        keys = [name.removeprefix(f"{bucket}/") for name in found]
        folders: list[str] = []
        if "delimiter" in query:
            rest = {key: key.removeprefix(prefix).partition("/") for key in keys}
            folders = sorted({f"{prefix}{first}/" for first, slash, _ in rest.values() if slash})
            keys = [key for key, (_, slash, _) in rest.items() if not slash]
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>{TIME}</LastModified>"
            f"<Size>{len(self.buckets.objects[f'{bucket}/{key}'])}</Size></Contents>"
            for key in keys
        )
        common = "".join(
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
            for folder in folders
        )
        self._xml(
            f"<ListBucketResult><Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix>"
            f"<KeyCount>{len(keys) + len(folders)}</KeyCount><MaxKeys>1000</MaxKeys>"
            f"<IsTruncated>false</IsTruncated>{contents}{common}</ListBucketResult>"
        )

    def _requested(self) -> tuple[str, dict[str, str]]:
        """Return `bucket/key` and the query."""
        parts = urlsplit(self.path)
        query = parse_qs(parts.query, keep_blank_values=True)
        name = unquote(parts.path).removeprefix("/")
        if name.count("/") == 1 and name.endswith("/"):
            name = name[:-1]
        return name, {key: values[0] for key, values in query.items()}

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = b"".join(iter(self._chunk, b""))
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if "aws-chunked" in self.headers.get("Content-Encoding", ""):
            return _unpacked(data)
        return data

    def _chunk(self) -> bytes:
        size = int(self.rfile.readline(), 16)
        data = self.rfile.read(size)
        if size:
            self.rfile.readline()
        return data

    def _xml(self, text: str) -> None:
        self._answer(200, f'<?xml version="1.0"?>{text}'.encode(), {"Content-Type": "text/xml"})

    def _fail(self, status: int, code: str) -> None:
        text = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>"
        self._answer(status, text.encode(), {"Content-Type": "text/xml"})

    def _answer(
        self, status: int, data: bytes, more: dict[str, str] | None = None, is_head: bool = False
    ) -> None:
        self.send_response(status)
        heads = {"ETag": _tag(data), "Last-Modified": formatdate(usegmt=True), **(more or {})}
        for name, value in heads.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if not is_head and self.command != "HEAD" and status != 204:
            self.wfile.write(data)


def _unpacked(data: bytes) -> bytes:
    """Decode Amazon's chunked uploads, with a checksum after the last chunk."""
    chunks = []
    while data:
        head, _, rest = data.partition(b"\r\n")
        size = int(head.partition(b";")[0], 16)
        if size == 0:
            break
        chunks.append(rest[:size])
        data = rest[size + 2 :]
    return b"".join(chunks)


def _tag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'
