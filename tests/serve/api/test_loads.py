"""Files of stages and running loads over the API. The tasks run in this process, without Spark."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import frazil
from frazil.cli.entry_point import main
from frazil.errors import Conflict, TooLarge, Unknown
from frazil.lake import JobGroup
from tests.serve.served import Said, Served, served

WAIT_S = 60
UPLOAD_MAX = 3_000_000
COPY = "COPY INTO t FROM @s/in/ FILE_FORMAT=(TYPE=NDJSON)"


class PausedTasks:
    """Runs the tasks of loads in this process, each after `go`."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.has_begun = threading.Event()

    def runner(self, group: JobGroup) -> Any:
        def do(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
            done = []
            for item in items:
                done.append(function(item))
                self.has_begun.set()
                while not self.go.wait(0.01):
                    group.check()
                group.check()
            return done

        return do


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stages") / "root"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory, roots: Path) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("loads") / "data"
    (folder / "lake" / "scratch").mkdir(parents=True)
    stages = {"roots": [str(roots)], "upload_bytes_max": UPLOAD_MAX}
    with served(folder, lake={"enabled": True}, stages=stages) as opened:
        frazil.connect(opened.url).execute(f"CREATE STAGE s URL='file://{roots}'").arrow()
        yield opened


@pytest.fixture
def tasks(there: Served, monkeypatch: pytest.MonkeyPatch) -> PausedTasks:
    paused = PausedTasks()
    monkeypatch.setattr(there.embedded.loader, "_runner", paused.runner)
    return paused


def get(there: Served, path: str) -> Any:
    said = there.ask("GET", f"/api/v1/{path}")
    assert said.status == 200, said.body
    return said.json


def put(there: Served, path: str, data: bytes, query: str = "") -> Said:
    return there.ask("PUT", f"/api/v1/stages/s/files/{path}{query}", data)


def test_upload_list_and_preview(there: Served, roots: Path) -> None:
    said = put(there, "deep/er/a%20b.csv", b"id,name\n1,x\n2,\n")
    assert said.status == 200, said.body
    assert said.json["path"] == "deep/er/a b.csv" and said.json["size_bytes"] == 15
    assert (roots / "deep/er/a b.csv").read_bytes() == b"id,name\n1,x\n2,\n"
    assert put(there, "deep/er/a%20b.csv", b"other").status == 409
    assert put(there, "deep/er/a%20b.csv", b"id,name\n3,z\n", "?overwrite=true").status == 200
    listed = get(there, "stages/s/files?path=deep/")
    assert [file["path"] for file in listed["files"]] == ["deep/er/a b.csv"]
    assert not listed["is_cut"]
    found = get(there, "stages/s/preview?path=deep/er/a%20b.csv")
    assert found["columns"] == [
        {"name": "id", "type": "BIGINT"},
        {"name": "name", "type": "VARCHAR"},
    ]
    assert found["rows"] == [["3", "z"]] and found["format"] == "csv"
    client = frazil.connect(there.url)
    rows = client.sql(
        "SELECT head, statement, outcome FROM statement_audit ORDER BY id DESC LIMIT 3"
    )
    assert rows.fetchall() == [
        ("UPLOAD", "UPLOAD @s/deep/er/a b.csv", "ok"),
        ("UPLOAD", "UPLOAD @s/deep/er/a b.csv", "conflict"),
        ("UPLOAD", "UPLOAD @s/deep/er/a b.csv", "ok"),
    ]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("..%2Foutside.csv", 400),
        ("a/../../outside.csv", 400),
        ("a//b.csv", 400),
        (".hidden", 400),
        ("a%00b", 400),
        ("x" * 2000, 404),
        ("a/" * 600 + "b", 404),
    ],
)
def test_an_upload_stays_below_its_root(there: Served, roots: Path, path: str, status: int) -> None:
    before = sorted(roots.parent.rglob("*"))
    assert put(there, path, b"x").status == status
    assert sorted(roots.parent.rglob("*")) == before


def test_what_is_unknown_or_too_large(there: Served, roots: Path) -> None:
    assert there.ask("PUT", "/api/v1/stages/none/files/a", b"x").status == 404
    assert there.ask("GET", "/api/v1/stages/none/files").status == 404
    assert there.ask("GET", "/api/v1/stages/s/preview?path=nothing.csv").status == 404
    assert there.ask("DELETE", "/api/v1/loads/load-1").status == 404
    said = put(there, "large.csv", b"x" * (UPLOAD_MAX + 1))
    assert said.status == 413 and "stages.upload_bytes_max" in said.message
    assert not list(roots.glob("*large*")) and not list(roots.glob(".*"))


def test_an_upload_that_is_cut_off_leaves_nothing(there: Served, roots: Path) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", there.port)
    connection.putrequest("PUT", "/api/v1/stages/s/files/cut.csv")
    connection.putheader("Content-Length", "1000000")
    connection.endheaders(b"x" * 100_000)
    deadline = time.monotonic() + WAIT_S
    while not (roots / ".cut.csv.upload").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    connection.close()
    while (roots / ".cut.csv.upload").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not (roots / "cut.csv").exists()


def test_the_client_and_the_command_upload(
    there: Served, roots: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client = frazil.connect(there.url)
    data = bytes(range(256)) * 8192
    client.upload("s", "bin/a.bin", (data[at : at + 99_999] for at in range(0, len(data), 99_999)))
    assert (roots / "bin/a.bin").read_bytes() == data
    with pytest.raises(Conflict):
        client.upload("s", "bin/a.bin", [b"x"])
    with pytest.raises(TooLarge):
        client.upload("s", "bin/b.bin", [data, data])
    with pytest.raises(Unknown):
        there.embedded.upload("none", "a", [b"x"])
    source = tmp_path / "local.csv"
    source.write_bytes(b"a\n1\n")
    assert main(["upload", str(source), "@s/cli/", "--url", there.url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "stage": "s",
        "path": "cli/local.csv",
        "size_bytes": 4,
    }
    assert (roots / "cli/local.csv").read_bytes() == b"a\n1\n"
    assert main(["upload", str(source), "s/cli/", "--url", there.url]) == 2


def test_a_running_load_is_shown_and_cancelled(
    there: Served, roots: Path, tasks: PausedTasks
) -> None:
    """A cancelled load loads nothing; the same statement then loads everything once."""
    (roots / "in").mkdir(exist_ok=True)
    data = b'{"a":1}\n' * 100
    (roots / "in" / "a.ndjson").write_bytes(data)
    body = {"sql": COPY}
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(there.ask, "POST", "/api/v1/statements", body)
        assert tasks.has_begun.wait(WAIT_S)
        (load,) = get(there, "loads")["loads"]
        assert load["statement"] == COPY and load["who"] == "anyone on this machine"
        assert (load["files"], load["bytes"]) == (1, len(data))
        assert (load["files_done"], load["bytes_done"]) == (1, len(data))
        assert load["step"] == "inferring columns" and not load["is_cancelled"]
        cancelled = there.ask("DELETE", f"/api/v1/loads/{load['id']}")
        assert cancelled.status == 200 and cancelled.json["is_cancelled"]
        said = running.result(WAIT_S)
    assert said.status == 503 and "cancelled: nothing was changed" in said.message
    assert get(there, "loads") == {"loads": []}
    tasks.go.set()
    assert there.ask("POST", "/api/v1/statements", body).json["rows"][0][2] == 100
    assert there.ask("POST", "/api/v1/statements", body).json["rows"] == []
    assert not list(Path(there.rooms.data, "lake", "scratch").iterdir())


def test_other_tokens_may_not_change_anything(tmp_path: Path) -> None:
    reading, changing = tmp_path / "reading", tmp_path / "changing"
    for file in (reading, changing):
        file.write_text(f"{file.name}-{file.name}-token\n")
        file.chmod(0o600)
    roots = tmp_path / "roots"
    roots.mkdir()
    tokens = {"token_file": str(reading), "statements_token_file": str(changing)}
    with served(
        tmp_path / "data", serve=tokens, lake={"enabled": True}, stages={"roots": [str(roots)]}
    ) as there:
        changer = {"Authorization": "Bearer changing-changing-token"}
        reader = {"Authorization": "Bearer reading-reading-token"}
        stage = {"sql": f"CREATE STAGE s URL='file://{roots}'"}
        assert there.ask("POST", "/api/v1/statements", stage, changer).status == 200
        for method, path in (
            ("PUT", "/api/v1/stages/s/files/a.csv"),
            ("GET", "/api/v1/stages/s/files"),
            ("GET", "/api/v1/stages/s/preview?path=a.csv"),
            ("DELETE", "/api/v1/loads/load-1"),
        ):
            assert there.ask(method, path, b"a\n1\n", reader).status == 401, path
        assert there.ask("GET", "/api/v1/loads", None, reader).status == 200
        assert not list(roots.iterdir())
        assert there.ask("PUT", "/api/v1/stages/s/files/a.csv", b"a\n", changer).status == 200
