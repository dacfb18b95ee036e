"""`frazil tables` with a real API: what it prints, writes, follows and refuses."""

from __future__ import annotations

import io
import json
import sys
import threading
from collections.abc import Iterator
from typing import Any, Protocol

import pytest

from frazil import cli
from frazil.cli.commands import tables as verb
from frazil.errors import Unresolved
from frazil.model import KiB
from tests.serve.served import Served, served

ANSWER_BYTES_MAX = 256 * KiB
ORDERS = {
    "columns": [
        {"name": "region", "type": "string"},
        {"name": "id", "type": "int64"},
        {"name": "amount", "type": "decimal(10,2)"},
    ],
    "key": ["region", "id"],
    "partitions": 2,
}
NOTES = {
    "columns": [{"name": "path", "type": "string"}, {"name": "text", "type": "string"}],
    "key": ["path"],
}


class Run(Protocol):
    def __call__(self, *words: str, text: str = "", code: int = 0) -> str: ...


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    small = {"answer_bytes_max": ANSWER_BYTES_MAX}
    with served(tmp_path_factory.mktemp("tables") / "data", serve=small) as opened:
        yield opened


@pytest.fixture
def run(
    there: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Run]:
    """Run `frazil tables`; returns its output, or its errors after a failure. The tables are
    new."""
    monkeypatch.setenv("FRAZIL_URL", there.url)
    for name, body in (("orders", ORDERS), ("notes", NOTES)):
        assert there.ask("PUT", f"/api/v1/tables/{name}", body).status == 200

    def call(*words: str, text: str = "", code: int = 0) -> str:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        found = cli.main(["tables", *words])
        out, errors = capsys.readouterr()
        assert found == code, errors
        return out if code == 0 else errors

    yield call
    for name in ("orders", "notes"):
        assert there.ask("DELETE", f"/api/v1/tables/{name}").status == 200


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def order(number: int, amount: str = "1.00") -> str:
    return json.dumps({"region": "eu", "id": number, "amount": amount}) + "\n"


def test_a_row_from_its_first_write_to_its_end(run: Run) -> None:
    key = ("--key", '["eu",17]')
    assert "3 changes" in run("put", "orders", text=order(17) + "\n" + order(18) + order(19))
    run("update", "orders", text=order(17, "2.50"))
    assert objects(run("get", "orders", *key, "--json")) == [
        {"region": "eu", "id": 17, "amount": "2.50"}
    ]
    assert "amount │ 2.50" in run("get", "orders", *key)
    written = json.loads(run("delete", "orders", "--json", text='{"region": "eu", "id": 17}'))
    ((_, offset),) = written["token"]["offsets"].items()
    assert "no row" in run("get", "orders", *key, code=1)
    before = run("get", "orders", *key, "--json", "--as-of", str(offset - 1))
    assert json.loads(before)["amount"] == "2.50"
    versions = objects(run("history", "orders", *key, "--json"))
    assert [each["_change"] for each in versions] == ["insert", "update", "delete"]
    assert {each["_by"] for each in versions} == {"http:anyone on this machine"}
    shown = run("history", "orders", *key)
    assert "delete" in shown and versions[0]["_time"][:10] in shown
    listed = {each["table"]: each for each in objects(run("--json"))}
    assert (listed["orders"]["keys"], listed["notes"]["keys"]) == (2, 0)
    assert "region, id" in run()
    described = json.loads(run("describe", "orders", "--json"))
    assert described["topic"] == "__table_orders"
    assert "decimal(10,2)" in run("describe", "orders")


def test_any_key_is_found_and_deleted(run: Run) -> None:
    """Also one that no path can have."""
    for path in ("a/b", "a b?c=%2F", "ü\x1b[2J"):
        run("put", "notes", text=json.dumps({"path": path, "text": path}))
        assert json.loads(run("get", "notes", "--key", path, "--json"))["text"] == path
        assert "\x1b" not in run("get", "notes", "--key", path)
        assert len(objects(run("history", "notes", "--key", path, "--json"))) == 1
        run("delete", "notes", "--key", path)
        run("get", "notes", "--key", path, code=1)
    assert "\x1b" not in run("changes", "notes")


def test_changes_are_followed_each_once(run: Run, there: Served) -> None:
    run("put", "orders", text="".join(map(order, range(50))))
    every = objects(run("changes", "orders", "--json"))
    assert sorted(each["id"] for each in every) == list(range(50))
    assert len(objects(run("changes", "orders", "--json", "--count", "7"))) == 7
    ((partition, one),) = {(e["_log_partition"], e["_offset"]) for e in every if e["id"] == 3}
    some = ("--partition", str(partition), "--from", str(one), "--json")
    assert {each["_offset"] for each in objects(run("changes", "orders", *some))} == {one}

    def write() -> None:
        body = "".join(map(order, range(100, 110))).encode()
        kind = {"Content-Type": "application/x-ndjson"}
        there.ask("POST", "/api/v1/tables/orders/rows", body, kind)

    writer = threading.Timer(1, write)
    writer.start()
    followed = objects(run("changes", "orders", "--from", "end", "--count", "10", "--json"))
    writer.join()
    assert sorted(each["id"] for each in followed) == list(range(100, 110))


def test_large_rows_are_shown_on_smaller_pages(run: Run) -> None:
    text = "x" * (ANSWER_BYTES_MAX // 8)
    wide = [json.dumps({"path": str(number), "text": text}) for number in range(20)]
    for line in wide:
        run("put", "notes", text=line)
    found = objects(run("changes", "notes", "--json"))
    assert [each["path"] for each in found] == [str(number) for number in range(20)]


def test_what_is_wrong_is_named_by_its_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines before are written, and counted."""
    monkeypatch.setattr(verb, "PORTION_BYTES", 128)
    text = "".join(map(order, range(40))) + order(40, "1.005") + order(41)
    assert "line 41, column amount" in run("put", "orders", text=text, code=1)
    keys = {each["id"] for each in objects(run("changes", "orders", "--json"))}
    assert keys >= set(range(30)) and 40 not in keys
    assert "no table nowhere" in run("put", "nowhere", text=order(1), code=1)
    assert "no table nowhere" in run("changes", "nowhere", code=1)
    assert "write [region, id]" in run("get", "orders", "--key", "17", code=2)
    assert "--partition" in run("changes", "orders", "--from", "3", code=2)
    assert "2 partitions" in run("changes", "orders", "--partition", "2", code=2)
    assert "cannot be read" in run("put", "orders", "/nowhere/rows", code=2)


def test_what_had_no_response_is_repeated_and_stored_once(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from frazil.client import Client

    exchange = Client.exchange
    lost: list[str] = []

    def lossy(self: Client, method: str, path: str, *rest: Any, **more: Any) -> bytes:
        answer = exchange(self, method, path, *rest, **more)
        if more.get("is_write") and not lost:
            lost.append(path)
            raise Unresolved("the response is lost")
        return answer

    monkeypatch.setattr(Client, "exchange", lossy)
    assert "1 change " in run("put", "notes", text='{"path": "a", "text": "b"}')
    assert lost
    assert len(objects(run("history", "notes", "--key", "a", "--json"))) == 1
