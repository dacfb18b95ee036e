"""StaticFiles: the web page, as it was built into this package.

Its files have their content in their names and are kept by browsers for ever; the page itself is
asked for anew each time. It has one address for each screen, which only the page tells apart.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from dataclasses import dataclass
from http import HTTPStatus
from importlib.resources import files
from importlib.resources.abc import Traversable

from frazil.httpd import HttpError, Response

TYPES = {
    "css": b"text/css; charset=utf-8",
    "html": b"text/html; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
    "woff2": b"font/woff2",
}
"""By the end of a name. A file of another kind is not built."""
ASSETS = "/assets/"
BASE = b'<base href="./" />'
"""Stands in the page for how far up the root is."""
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "worker-src 'self'",
        # The editor's and the charts' styles are made as they are drawn.
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""What the page may do: run its own scripts, and ask the node it came from. Nothing else."""
OF_PAGES = (
    (b"content-security-policy", POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"vary", b"accept, accept-encoding"),
    (b"cache-control", b"no-cache"),
)
OF_ASSETS = (
    (b"vary", b"accept-encoding"),
    (b"cache-control", b"public, max-age=31536000, immutable"),
)
GZIP_MIN = 1024
"""Below, packing makes nothing faster."""
MISSING = b"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Frazil</title>
<body style="font: 15px/1.5 sans-serif; max-width: 40em; margin: 4em auto; padding: 0 1em">
<h1>This Frazil has no web page</h1>
<p>It was installed from its source where there was no Node.js 20.19 or newer to build the page
with. Everything else is here: the command <code>frazil</code>, and the API, described at
<a href="openapi.json">/openapi.json</a>.</p>
<p>For the page: install Node.js, run <code>make ui</code> where the source is, and start the node
again. A wheel of Frazil has the page in it.</p>
"""

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


@dataclass(frozen=True, slots=True)
class _File:
    body: bytes
    packed: bytes | None
    content_type: bytes


class StaticFiles:
    """Files of the page, read when they are first asked for. Asked by one thread at a time or by
    several: what is read twice is the same."""

    def __init__(self, folder: Traversable | None = None) -> None:
        self._folder = files("frazil.serve") / "built" if folder is None else folder
        self._read: dict[str, _File] = {}

    def is_page(self, path: str, accept: str) -> bool:
        """Is this a browser that goes to a screen, or comes for a file of the page?"""
        if path.startswith(ASSETS):
            return True
        return "text/html" in accept and not path.startswith("/api/")

    def answer(self, path: str, accepts_gzip: bool, known: str) -> Response:
        """The page for a screen, or one of its files. `known` is what the browser has already."""
        if path.startswith(ASSETS):
            return _answer(self._asset(path.removeprefix(ASSETS)), OF_ASSETS, accepts_gzip)
        page = self._file("index.html")
        if page is None:
            return _answer(_File(MISSING, None, TYPES["html"]), OF_PAGES, accepts_gzip)
        depth = path.count("/") - 1
        base = b'<base href="%s" />' % (b"../" * depth or b"./")
        body = page.body.replace(BASE, base, 1)
        tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        headers = (*OF_PAGES, (b"etag", tag.encode()))
        if tag in known:
            return Response(status=HTTPStatus.NOT_MODIFIED, headers=list(headers))
        return _answer(_File(body, None, TYPES["html"]), headers, accepts_gzip)

    def _asset(self, name: str) -> _File:
        found = self._file(f"assets/{name}") if _NAME.fullmatch(name) else None
        if found is None:
            raise HttpError(
                HTTPStatus.NOT_FOUND,
                f"the page has no file {name!r}; it may be of another version: load it again",
            )
        return found

    def _file(self, name: str) -> _File | None:
        if name in self._read:
            return self._read[name]
        at = self._folder / name
        content_type = TYPES.get(name.rpartition(".")[2])
        if content_type is None or not at.is_file():
            return None
        body = at.read_bytes()
        packed = gzip.compress(body, 9, mtime=0) if len(body) >= GZIP_MIN else None
        found = self._read[name] = _File(body, packed, content_type)
        return found


def _answer(file: _File, headers: tuple[tuple[bytes, bytes], ...], accepts_gzip: bool) -> Response:
    own = [(b"content-type", file.content_type), *headers]
    if accepts_gzip and file.packed is not None:
        own.append((b"content-encoding", b"gzip"))
        return Response(status=HTTPStatus.OK, headers=own, body=file.packed)
    return Response(status=HTTPStatus.OK, headers=own, body=file.body)
