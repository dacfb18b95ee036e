"""Arrow's JDBC driver, as BI tools use it, with a real node."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.node import Node
from tests.ingest.certificates import Certificates, make_certificates
from tests.kafka.wire.java import QUICK
from tests.live.flight.jdbc_jar import driver_jar, missing

MISSING = missing()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")

JUDGE = Path(__file__).with_name("JdbcJudge.java")
OPEN = "--add-opens=java.base/java.nio=ALL-UNNAMED"
WAIT_S = 120
ROWS = 300_000
TOKEN = "reader-0123456789"
PARTS = ("properties", "statements", "catalog", "parameters", "types", "errors", "rows", "cancel")
WANTED = {
    "answered": "true",
    "failed": "[]",
    "product": "Frazil",
    "quote": '"',
    "read only": "false",
    "inserted": "2",
    "bound": "1",
    "updated": "1",
    "deleted": "1",
    "left": "[[2, milk, 9.5], [3, it's, 3.5]]",
    "catalogs": "[datafusion]",
    "schemas": "[public]",
    "types": "[TABLE, VIEW]",
    "table": "[stock]",
    "views": "[entry_spans, exponential_histograms, gauges, histograms, summaries, sums]",
    "columns": "[id, item, price, is_there, at, _offset]",
    "column types": "[-5, 12, 8, 16, 93, -5]",
    "of logs": "true",
    "key": "[id]",
    "imported": "[]",
    "exported": "[]",
    "getIndexInfo": "true",
    "getProcedures": "true",
    "getFunctions": "true",
    "parameter types": "[Int(64, true), Utf8, Timestamp(MILLISECOND, null), "
    "FloatingPoint(DOUBLE), Bool, Int(64, true)]",
    "chosen 1": "[[2, milk]]",
    "chosen 2": "[[2, milk]]",
    "times": "[[0]]",
    "integers": "10",
    "floats": "4.0",
    "decimal": "true",
    "boolean": "true",
    "text": "text",
    "bytes": "[0, -1]",
    "date": "2026-11-19",
    "timestamp": "4000",
    "list": "true",
    "null": "true",
    "names": "14a",
    "map": "[]",
    "rows": str(ROWS),
    "sum": "true",
    "cancelled": "true",
}
MESSAGES = {
    "SELEC 1": "this is not SQL at line 1, column 1",
    "SELECT * FROM nowhere": "no table nowhere",
    "SELECT 1 / 0 AS a": "divides by zero",
    "DROP TABLE nowhere": "there is no table nowhere",
}


def judge(url: str, *parts: str, user: str = "", password: str = "") -> dict[str, str]:
    """Run parts of the program. Returns the answers by question."""
    command = ["java", *QUICK, OPEN, "-Duser.timezone=UTC", "-cp", str(driver_jar()), str(JUDGE)]
    done = subprocess.run(
        [*command, url, user, password, str(ROWS), *parts],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(line.split("\t", 1) for line in done.stdout.splitlines())


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, Certificates]]:
    folder = tmp_path_factory.mktemp("guarded")
    files = make_certificates(folder)
    (folder / "tokens").write_text(TOKEN)
    options = ("--tls-certificate", files.server_certificate, "--tls-key", files.server_key)
    token = ("--token-file", str(folder / "tokens"))
    with Node(folder / "data", *options, *token, "--set", "lake.enabled=false") as node:
        yield node, files


def test_a_tool_finds_its_way(tmp_path: Path) -> None:
    """Metadata, parameters, types, statements, errors, many rows, cancellation."""
    with Node(tmp_path / "data", "--set", "lake.enabled=false") as node:
        url = f"jdbc:arrow-flight-sql://127.0.0.1:{node.flight_port}?useEncryption=false"
        found = judge(url, *PARTS)
        messages = {text: found.pop(text) for text in MESSAGES}
        found.pop("took_ms")
        assert found == WANTED
        for text, message in MESSAGES.items():
            assert message in messages[text]
        assert "Traceback" not in node.errors()


def test_a_password_is_a_token(guarded: tuple[Node, Certificates]) -> None:
    """Over TLS, with the authority of the server's certificate; no other password does."""
    node, files = guarded
    url = f"jdbc:arrow-flight-sql://127.0.0.1:{node.flight_port}?tlsRootCerts={files.authority}"
    assert judge(url, "query", user="bi", password=TOKEN) == {"one": "[[1, x]]"}
    wrong = judge(url, "query", user="bi", password=TOKEN[::-1])
    assert "token is wrong" in wrong["refused"]
