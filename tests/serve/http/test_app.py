"""Who may ask, what is found where, and what is bounded."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from frazil import errors
from frazil.errors import FrazilError, Overloaded
from frazil.serve.http.responses import STATUSES, answer_of_error
from tests.serve.api.test_sql import SLOW
from tests.serve.served import Served, fill, served


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("app") / "data") as opened:
        yield opened


def leaves(kind: type[FrazilError]) -> Iterator[type[FrazilError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from leaves(below)


ERRORS = [kind for kind in leaves(FrazilError) if kind.__module__ == "frazil.errors"][1:]


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_has_a_status_other_than_500(kind: type[FrazilError]) -> None:
    assert any(parent in STATUSES for parent in kind.__mro__)
    if kind is not errors.Corrupt:
        answer = answer_of_error(kind("why"))
        assert 400 <= answer.status < 600
        assert answer.status != 500
        assert b'"message":"why"' in answer.body
    wait = dict(answer_of_error(Overloaded("full", retry_after_ms=1500)).headers)
    assert wait[b"retry-after"] == b"2"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/", 200),
        ("GET", "/api/v1/sql", 405),
        ("DELETE", "/api/v1/sql", 405),
        ("GET", "/api/v1/sql/", 404),
        ("GET", "/api/v1/snapshots?tabel=logs", 400),
        ("GET", "/api/v1/snapshots?table=a&table=b", 400),
        ("GET", "/api/v1/snapshots?table=%ff", 400),
        ("GET", "/openapi.json", 200),
        ("GET", "/openapi.json?" + "a" * 17000, 414),
        ("POST", "/api/v1/flush", 503),
    ],
)
def test_paths(there: Served, method: str, path: str, status: int) -> None:
    said = there.ask(method, path)
    assert said.status == status
    if status != 200:
        assert said.message


def test_a_body_above_the_limit_is_refused(there: Served) -> None:
    body = b'{"sql": "' + b"x" * 2_000_000 + b'"}'
    said = there.ask("POST", "/api/v1/sql", body, {"Content-Type": "application/json"})
    assert said.status == 413
    assert "serve.body_bytes_max" in said.message


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:1"}, 200),
        ({"Host": "[::1]:4320"}, 200),
        ({"Host": "shop.localhost"}, 200),
        ({"Host": "stranger.example"}, 403),
        ({"Host": "127.0.0.1.stranger.example"}, 403),
        ({"Host": ""}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Origin": "https://stranger.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_foreign_origins_are_refused(there: Served, headers: dict[str, str], status: int) -> None:
    """Neither by asking openly, nor under a name of their own that leads to this machine."""
    said = there.ask("POST", "/api/v1/sql", {"sql": "SELECT 1"}, headers)
    assert said.status == status
    if status == 200 and "Origin" in headers:
        assert said.headers["access-control-allow-origin"] == headers["Origin"]


def test_cors_preflight_is_answered(there: Served) -> None:
    headers = {"Origin": "http://localhost:3000", "Access-Control-Request-Method": "POST"}
    said = there.ask("OPTIONS", "/api/v1/sql", headers=headers)
    assert said.status == 204
    assert "content-type" in said.headers["access-control-allow-headers"]
    said = there.ask("OPTIONS", "/api/v1/sql", headers={**headers, "Origin": "http://a.example"})
    assert said.status == 403


def test_tokens(tmp_path: Path) -> None:
    """Those of readers are their own, if they have some; probes need none."""
    senders, readers = tmp_path / "senders", tmp_path / "readers"
    senders.write_text("sender-sender-sender\n")
    readers.write_text("reader-reader-reader\n")
    tokens = {"ingest": {"token_file": str(senders)}, "serve": {"token_file": str(readers)}}
    with served(tmp_path / "data", **tokens) as opened:
        assert opened.sql("SELECT 1").status == 401
        assert opened.ask("GET", "/openapi.json").status == 200
        for token, status in (("reader", 200), ("sender", 401)):
            headers = {"Authorization": f"Bearer {token}-{token}-{token}"}
            said = opened.ask("POST", "/api/v1/sql", {"sql": "SELECT 1"}, headers)
            assert said.status == status


def test_concurrent_requests_are_limited(tmp_path: Path) -> None:
    """Others are told to come back, and the node stays calm."""
    with served(tmp_path / "data", serve={"requests_max": 2}) as opened:
        fill(opened, 3000)
        answers: list[int] = []

        def ask() -> None:
            answers.append(opened.sql(SLOW, timeout_ms=2000).status)

        connections = [threading.Thread(target=ask) for _ in range(6)]
        for each in connections:
            each.start()
        for each in connections:
            each.join()
        assert set(answers) == {413, 429}
        assert answers.count(413) == 2
