"""The catalog: damaged, incomplete, of another user; or a server that is silent, or says no."""

from __future__ import annotations

import http.server
import json
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from frazil.doctor.checks.catalog import check_catalog
from frazil.lake.catalog.catalog import open_catalog
from frazil.lake.tables.tables import ensure_table
from frazil.settings import LakeConfig
from tests.doctor.patient import Patient, all_ok, as_nobody, problem, public_folder


def make_table(patient: Patient) -> Path:
    """Create the table logs, without rows. Returns its metadata file."""
    patient.data.mkdir(exist_ok=True)
    with closing(open_catalog(LakeConfig(), patient.data)) as catalog:
        table = ensure_table(catalog, LakeConfig(), "logs")
    return Path(table.metadata_location.removeprefix("file://"))


def test_an_intact_catalog_is_ok(tmp_path: Path) -> None:
    patient = Patient(tmp_path)
    assert patient.check(check_catalog) == []
    patient.data.mkdir()
    assert "created at the first start" in patient.check(check_catalog)[0].found
    make_table(patient)
    (found,) = patient.check(check_catalog)
    assert found.level == "ok" and found.found.endswith("is intact, with 1 tables")


def test_a_damaged_catalog_is_a_failure(tmp_path: Path) -> None:
    """Overwritten, cut short, or with an empty page; restoring a backup fixes it."""
    patient = Patient(tmp_path)
    make_table(patient)
    catalog = patient.data / "lake/catalog.db"
    copy = Path(shutil.copy(catalog, tmp_path))
    whole = copy.read_bytes()
    page = whole[:4096] + bytes(4096) + whole[8192:]
    for content in (b"garbage" * 1000, whole[:5000], page):
        catalog.write_bytes(content)
        found = problem(patient.check(check_catalog))
        assert found.level == "failure" and "is damaged" in found.found
        assert found.fix and f"restore {catalog} from a backup" in found.fix.text
        for name in ("catalog.db-wal", "catalog.db-shm"):
            (catalog.parent / name).unlink(missing_ok=True)
        shutil.copy(copy, catalog)
        assert all_ok(patient.check(check_catalog))


@pytest.mark.parametrize(("content", "words"), [(None, "is missing"), (b"{", "is damaged")])
def test_a_missing_metadata_file_is_a_failure(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    patient = Patient(tmp_path)
    metadata = make_table(patient)
    copy = Path(shutil.copy(metadata, tmp_path))
    metadata.unlink()
    if content is not None:
        metadata.write_bytes(content)
    found = problem(patient.check(check_catalog))
    assert found.level == "failure" and "frazil.logs" in found.found and words in found.found
    assert found.fix and found.fix.text == f"restore {metadata} from a backup"
    shutil.copy(copy, metadata)
    assert all_ok(patient.check(check_catalog))


def test_a_catalog_of_another_user_is_a_failure() -> None:
    """File and warehouse have a finding each."""
    with public_folder() as folder:
        patient = Patient(folder)
        make_table(patient)
        patient.data.chmod(0o777)
        (patient.data / "lake").chmod(0o777)
        (patient.data / "lake/catalog.db").chmod(0o600)
        with as_nobody():
            found = patient.check(check_catalog)
        assert [each.level for each in found] == ["failure", "failure"]
        for each in found:
            patient.mend(each)
        with as_nobody():
            assert all_ok(patient.check(check_catalog))


class Server(http.server.BaseHTTPRequestHandler):
    """The parts of a REST catalog that the check calls."""

    status: ClassVar[int] = 200

    def do_GET(self) -> None:
        answers = {
            "/v1/config": {"defaults": {}, "overrides": {}},
            "/v1/namespaces": {"namespaces": []},
        }
        body = answers.get(self.path.partition("?")[0], {})
        if self.status != 200:
            body = {"error": {"message": "who are you?", "type": "x", "code": self.status}}
        self.send_response(self.status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def serving(port: int, answer: int) -> Iterator[None]:
    kind = type("Answering", (Server,), {"status": answer})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), kind)
    thread = threading.Thread(target=server.serve_forever, args=[0.02])
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def test_a_stopped_server_is_a_failure(tmp_path: Path) -> None:
    port = free_port()
    uri = f"http://127.0.0.1:{port}"
    patient = Patient(tmp_path, f"lake.catalog.uri = '{uri}'", "lake.catalog.type = 'rest'")
    found = problem(patient.check(check_catalog))
    assert found.level == "failure" and "refused" in found.found
    assert found.fix and found.fix.text.startswith(f"start the catalog at {uri}")
    with serving(port, 200):
        assert all_ok(patient.check(check_catalog))


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_rejects_us_is_a_failure(tmp_path: Path, status: int) -> None:
    port = free_port()
    uri = f"http://127.0.0.1:{port}"
    patient = Patient(tmp_path, f"lake.catalog.uri = '{uri}'", "lake.catalog.type = 'rest'")
    with serving(port, status):
        found = problem(patient.check(check_catalog))
    assert found.level == "failure" and "rejected the request" in found.found
    assert found.fix and "token or credential in lake.catalog" in found.fix.text
    with serving(port, 200):
        assert all_ok(patient.check(check_catalog))


def test_a_server_that_never_responds_times_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frazil.doctor.checks.catalog.TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        patient = Patient(tmp_path, f"lake.catalog.uri = '{uri}'", "lake.catalog.type = 'rest'")
        found = problem(patient.check(check_catalog))
    assert found.level == "failure" and "timed out" in found.found


def test_a_bucket_that_does_not_answer_is_a_failure(tmp_path: Path) -> None:
    endpoint = f"http://127.0.0.1:{free_port()}"
    patient = Patient(
        tmp_path,
        "lake.warehouse = 's3://bucket/folder'",
        f"lake.catalog.'s3.endpoint' = '{endpoint}'",
    )
    patient.data.mkdir()
    found = problem(patient.check(check_catalog))
    assert (found.check, found.level) == ("warehouse", "failure")
    assert "s3://bucket/folder cannot be written" in found.found
    assert found.fix and "s3.endpoint" in found.fix.text


def test_a_catalog_without_a_type_is_a_failure(tmp_path: Path) -> None:
    patient = Patient(tmp_path, "lake.catalog.urii = 'http://x'")
    patient.data.mkdir()
    found = problem(patient.check(check_catalog))
    assert found.level == "failure" and "it needs a type" in found.found
