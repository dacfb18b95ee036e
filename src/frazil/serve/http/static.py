"""StaticFiles: the web page, as built into this package.

Assets are served below `/assets/<digest of all assets>/`, so browsers cache them forever, and
parts of two builds never meet; the page itself is revalidated each time. Every screen has its own
URL, which only the page interprets.
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
"""Content type by file extension; others are not served."""
ASSETS = "/assets/"
ASSETS_IN_PAGE = b'"./assets/'
"""How the built page refers to its assets; the digest is inserted."""
DIGEST_CHARS = 16
BASE = b'<base href="./" />'
"""Replaced by the relative path to the root."""
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "worker-src 'self'",
        # The editor and the charts create styles at run time.
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""The page may run its own scripts and call its own node, nothing else."""
PAGE_HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"vary", b"accept, accept-encoding"),
    (b"cache-control", b"no-cache"),
)
ASSET_HEADERS = (
    (b"vary", b"accept-encoding"),
    (b"cache-control", b"public, max-age=31536000, immutable"),
)
GZIP_MIN = 1024
"""Smaller files are not worth compressing."""
MISSING = b"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Frazil</title>
<body style="font: 15px/1.5 sans-serif; max-width: 40em; margin: 4em auto; padding: 0 1em">
<h1>This Frazil has no web page</h1>
<p>The folder <code>frazil/serve/built</code> is missing from this installation. The command
<code>frazil</code> and the API (see <a href="openapi.json">/openapi.json</a>) work.</p>
<p>The page is part of the source and of every wheel: install Frazil again, or run
<code>make ui</code> in the source folder, which needs Node.js, and restart the node.</p>
"""

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


@dataclass(frozen=True, slots=True)
class _File:
    body: bytes
    compressed: bytes | None
    content_type: bytes


class StaticFiles:
    """Files of the page, read on first use. Any thread may call it; reading twice is harmless."""

    def __init__(self, folder: Traversable | None = None) -> None:
        self._folder = files("frazil.serve") / "built" if folder is None else folder
        self._read: dict[str, _File] = {}
        self._digest = ""

    def is_page(self, path: str, accept: str) -> bool:
        """Return whether a browser requests a screen or an asset."""
        if path.startswith(ASSETS):
            return True
        return "text/html" in accept and not path.startswith("/api/")

    def answer(self, path: str, accepts_gzip: bool, known: str) -> Response:
        """Return the page or an asset. `known` is the `If-None-Match` header."""
        if path.startswith(ASSETS):
            return _answer(self._asset(path.removeprefix(ASSETS)), ASSET_HEADERS, accepts_gzip)
        page = self._file("index.html")
        if page is None:
            return _answer(_File(MISSING, None, TYPES["html"]), PAGE_HEADERS, accepts_gzip)
        depth = path.count("/") - 1
        base = b'<base href="%s" />' % (b"../" * depth or b"./")
        versioned = b"%s%s/" % (ASSETS_IN_PAGE, self.digest().encode())
        body = page.body.replace(BASE, base, 1).replace(ASSETS_IN_PAGE, versioned)
        tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        headers = (*PAGE_HEADERS, (b"etag", tag.encode()))
        if tag in known:
            return Response(status=HTTPStatus.NOT_MODIFIED, headers=list(headers))
        return _answer(_File(body, None, TYPES["html"]), headers, accepts_gzip)

    def digest(self) -> str:
        """Return the digest of all assets, by which browsers tell two builds apart."""
        folder = self._folder / "assets"
        if not self._digest and folder.is_dir():
            digest = hashlib.sha256()
            for path in sorted(folder.iterdir(), key=lambda each: each.name):
                digest.update(f"{path.name}\0".encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
            self._digest = digest.hexdigest()[:DIGEST_CHARS]
        return self._digest

    def _asset(self, path: str) -> _File:
        digest, _, name = path.partition("/")
        is_ours = _NAME.fullmatch(name) is not None and digest == self.digest()
        file = self._file(f"assets/{name}") if is_ours else None
        if file is None:
            raise HttpError(
                HTTPStatus.NOT_FOUND,
                f"the page has no file {name!r}; reload the page, it may be another version",
            )
        return file

    def _file(self, name: str) -> _File | None:
        if name in self._read:
            return self._read[name]
        path = self._folder / name
        content_type = TYPES.get(name.rpartition(".")[2])
        if content_type is None or not path.is_file():
            return None
        body = path.read_bytes()
        compressed = gzip.compress(body, 9, mtime=0) if len(body) >= GZIP_MIN else None
        file = self._read[name] = _File(body, compressed, content_type)
        return file


def _answer(file: _File, headers: tuple[tuple[bytes, bytes], ...], accepts_gzip: bool) -> Response:
    sent = [(b"content-type", file.content_type), *headers]
    if accepts_gzip and file.compressed is not None:
        sent.append((b"content-encoding", b"gzip"))
        return Response(status=HTTPStatus.OK, headers=sent, body=file.compressed)
    return Response(status=HTTPStatus.OK, headers=sent, body=file.body)
