"""Files of the web page and their headers."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest

from frazil.httpd import HttpError, Response
from frazil.serve.http.static import ASSETS, BASE, StaticFiles
from tests.serve.served import Served, served

SCRIPT = b"console.log('well')\n" * 100
HTML = b'<!doctype html><head>%s<script src="./assets/a.js"></script></head>' % BASE
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.fixture
def page(tmp_path: Path) -> StaticFiles:
    """One that was built."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_bytes(HTML)
    (tmp_path / "assets" / "a.js").write_bytes(SCRIPT)
    (tmp_path / "assets" / "a.map").write_bytes(b"{}")
    (tmp_path / "secret.js").write_bytes(b"secret")
    return StaticFiles(tmp_path)


def headers(answer: Response) -> dict[bytes, bytes]:
    found = dict(answer.headers)
    assert len(found) == len(answer.headers)
    return found


def asset(page: StaticFiles, name: str) -> str:
    return f"{ASSETS}{page.digest()}/{name}"


@pytest.mark.parametrize(
    ("path", "base"),
    [
        ("/", b"./"),
        ("/logs", b"./"),
        ("/trace/abc", b"../"),
        ("/trace/", b"../"),
        ("/a/b/c", b"../../"),
    ],
)
def test_every_screen_gets_the_page_with_its_base_path(
    page: StaticFiles, path: str, base: bytes
) -> None:
    """Whatever path a proxy has put before it: the root is relative."""
    answer = page.answer(path, accepts_gzip=False, known="")
    assert answer.status == HTTPStatus.OK
    assert b'<base href="%s" />' % base in answer.body
    assert headers(answer)[b"cache-control"] == b"no-cache"
    assert b"script-src 'self';" in headers(answer)[b"content-security-policy"]


def test_a_matching_etag_returns_304(page: StaticFiles) -> None:
    first = page.answer("/logs", accepts_gzip=False, known="")
    tag = headers(first)[b"etag"].decode()
    again = page.answer("/logs", accepts_gzip=False, known=tag)
    assert (again.status, again.body) == (HTTPStatus.NOT_MODIFIED, b"")
    elsewhere = page.answer("/trace/abc", accepts_gzip=False, known=tag)
    assert elsewhere.status == HTTPStatus.OK


def test_the_address_of_assets_changes_with_any_of_them(page: StaticFiles, tmp_path: Path) -> None:
    """Browsers keep assets forever; a page of another build is told to reload."""
    before = asset(page, "a.js")
    assert before.encode() in page.answer("/", accepts_gzip=False, known="").body
    (tmp_path / "assets" / "b.css").write_bytes(b"")
    other = StaticFiles(tmp_path)
    assert asset(other, "a.js").encode() in other.answer("/", accepts_gzip=False, known="").body
    with pytest.raises(HttpError, match="reload the page") as refused:
        other.answer(before, accepts_gzip=False, known="")
    assert refused.value.status == HTTPStatus.NOT_FOUND


def test_assets_are_immutable_and_compressed(page: StaticFiles) -> None:
    packed = page.answer(asset(page, "a.js"), accepts_gzip=True, known="")
    assert headers(packed)[b"content-encoding"] == b"gzip"
    assert gzip.decompress(packed.body) == SCRIPT
    plain = page.answer(asset(page, "a.js"), accepts_gzip=False, known="")
    assert plain.body == SCRIPT
    assert b"content-encoding" not in headers(plain)
    for answer in (packed, plain):
        assert b"immutable" in headers(answer)[b"cache-control"]
        assert headers(answer)[b"content-type"] == b"text/javascript; charset=utf-8"
        assert headers(answer)[b"vary"] == b"accept-encoding"


@pytest.mark.parametrize(
    "name",
    [
        "b.js",
        "a.map",
        "",
        ".",
        "..",
        "../secret.js",
        "%2e%2e/secret.js",
        "x/../a.js",
        "\0",
    ],
)
def test_other_files_are_not_served(page: StaticFiles, name: str) -> None:
    with pytest.raises(HttpError) as refused:
        page.answer(asset(page, name), accepts_gzip=False, known="")
    assert refused.value.status == HTTPStatus.NOT_FOUND


def test_a_missing_page_is_explained(tmp_path: Path) -> None:
    answer = StaticFiles(tmp_path).answer("/logs", accepts_gzip=False, known="")
    assert b"make ui" in answer.body
    assert answer.status == HTTPStatus.OK


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("page") / "data") as opened:
        yield opened


@pytest.mark.parametrize(
    ("path", "accept", "kind"),
    [
        ("/", BROWSER, "text/html"),
        ("/", "*/*", "application/json"),
        ("/logs", BROWSER, "text/html"),
        ("/logs", "*/*", "application/json"),
        ("/trace/abc?span=1", BROWSER, "text/html"),
        ("/metrics", BROWSER, "text/plain"),
        ("/livez", BROWSER, "text/plain"),
        ("/openapi.json", BROWSER, "application/json"),
        ("/api/v1/nowhere", BROWSER, "application/json"),
        ("/assets/none.js", BROWSER, "application/json"),
        ("/assets/0123456789abcdef/index.js", BROWSER, "application/json"),
    ],
)
def test_browsers_get_the_page_and_programs_the_api(
    there: Served, path: str, accept: str, kind: str
) -> None:
    said = there.ask("GET", path, headers={"Accept": accept})
    assert said.headers["content-type"].startswith(kind)


def test_the_page_needs_no_token(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("a-secret-of-some-length\n")
    with served(tmp_path / "data", ingest={"token_file": str(tokens)}) as closed:
        page = closed.ask("GET", "/logs", headers={"Accept": BROWSER})
        assert page.status == HTTPStatus.OK
        assert closed.ask("GET", "/api/v1/status").status == HTTPStatus.UNAUTHORIZED
