"""Saved views and queries: files like dashboards, with rules of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serve.served import Served, served

VIEW = {
    "format": 1,
    "title": "Failing payments",
    "screen": "logs",
    "params": {"q": ["service:payment"], "is": ["severity=ERROR", "severity=FATAL"]},
}
QUERY = {"format": 1, "title": "Rows", "sql": "SELECT count(*) FROM logs"}


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("saved") / "data") as opened:
        yield opened


@pytest.mark.parametrize(
    ("kind", "field", "body"), [("views", "view", VIEW), ("queries", "query", QUERY)]
)
def test_a_file_is_stored_listed_replaced_and_deleted(
    there: Served, kind: str, field: str, body: dict[str, Any]
) -> None:
    path = f"/api/v1/{kind}/one"
    stored = there.ask("PUT", path, body)
    assert stored.status == 200
    assert stored.json[field] == body
    assert (Path(there.rooms.data) / kind / "one.json").read_text().startswith('{\n  "format": 1')
    assert there.ask("GET", path).json == stored.json
    assert there.ask("GET", f"/api/v1/{kind}").json[kind] == [stored.json]
    assert there.ask("PUT", path, body).status == 409
    etag = stored.json["etag"]
    renamed = there.ask("PUT", f"{path}?etag={etag}", {**body, "title": "Renamed"})
    assert renamed.json[field]["title"] == "Renamed"
    assert there.ask("DELETE", f"{path}?etag={etag}").status == 409
    assert there.ask("DELETE", path).json == renamed.json
    assert there.ask("GET", f"/api/v1/{kind}").json == {kind: []}


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        ("views", b"{", "not JSON"),
        ("views", b'{"format": 2, "title": "x", "screen": "logs"}', "not a view"),
        ("views", b'{"format": 1, "title": "x", "screen": "nowhere"}', "$.screen"),
        ("views", b'{"format": 1, "title": "x", "screen": "trace"}', "needs the id"),
        ("views", b'{"format": 1, "title": "x", "screen": "logs", "id": "a"}', "has no id"),
        ("queries", b'{"format": 1, "title": "x"}', "sql"),
        ("queries", b'{"format": 1, "title": "x", "sql": "SELECT 1", "engine": "x"}', "$.engine"),
    ],
)
def test_a_broken_file_is_reported_beside_the_others(
    there: Served, kind: str, text: bytes, why: str
) -> None:
    body = VIEW if kind == "views" else QUERY
    assert there.ask("PUT", f"/api/v1/{kind}/right", body).status == 200
    broken = Path(there.rooms.data) / kind / "broken.json"
    broken.write_bytes(text)
    try:
        listed = {each["name"]: each for each in there.ask("GET", f"/api/v1/{kind}").json[kind]}
        assert listed["right"]["error"] is None
        assert f"{kind}/broken.json" in listed["broken"]["error"]
        assert why in listed["broken"]["error"]
    finally:
        broken.unlink()
        assert there.ask("DELETE", f"/api/v1/{kind}/right").status == 200


@pytest.mark.parametrize(
    ("kind", "body", "why"),
    [
        ("views", {**VIEW, "title": ""}, "title"),
        ("views", {**VIEW, "params": {"q": []}}, "params"),
        ("views", {**VIEW, "params": {"q": "text"}}, "params"),
        ("views", {**VIEW, "params": {"q": ["é" * 2000]}}, "12002 characters; the limit is 8000"),
        ("views", {**VIEW, "sql": "SELECT 1"}, "sql"),
        ("queries", {**QUERY, "sql": ""}, "sql"),
        ("queries", {**QUERY, "sql": "x" * 70_000}, "sql"),
    ],
)
def test_invalid_bodies_are_refused_and_not_written(
    there: Served, kind: str, body: dict[str, Any], why: str
) -> None:
    refused = there.ask("PUT", f"/api/v1/{kind}/refused", body)
    assert refused.status == 400
    assert why in refused.json["error"]["message"]
    assert not (Path(there.rooms.data) / kind / "refused.json").exists()
