"""The door of statements: views end to end, who may send, what is refused, and what reading SQL
can never do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import frazil
from frazil.cli.entry_point import main
from frazil.errors import Conflict, Malformed, Rejected
from frazil.httpd import Auth
from frazil.serve.server import statements_auth
from frazil.settings import IngestConfig, ServeConfig
from tests.serve.served import Said, Served, fill, served

ROWS = 30


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("statements") / "data") as opened:
        fill(opened, ROWS)
        yield opened


def send(there: Served, text: str, **headers: str) -> Said:
    return there.ask("POST", "/api/v1/statements", {"sql": text}, headers)


def rows(said: Said) -> list[list[Any]]:
    assert said.status == 200, said.body
    found: list[list[Any]] = said.json["rows"]
    return found


def test_a_view_from_its_definition_to_its_end(there: Served) -> None:
    """Defined, read, listed, replaced, audited, dropped; the file is the truth."""
    text = "CREATE VIEW few AS SELECT *, upper(service_name) AS loud FROM logs LIMIT 7"
    assert rows(send(there, text))[0][0].startswith("created view few with")
    assert rows(there.sql("SELECT count(loud) FROM few")) == [[7]]
    file = Path(there.rooms.data, "definitions/view/few.sql")
    assert file.read_text() == f"{text};\n"
    assert send(there, text).status == 409
    replaced = "CREATE OR REPLACE VIEW few AS SELECT body FROM logs LIMIT 3"
    rows(send(there, replaced))
    assert rows(there.sql("SELECT count(*) FROM few")) == [[3]]
    shown = rows(send(there, "SHOW VIEWS"))
    assert shown == [["view", "few", "CREATE VIEW few AS SELECT body FROM logs LIMIT 3", None]]
    assert send(there, "DROP VIEW few; DROP VIEW few").status == 400
    rows(send(there, "DROP VIEW few"))
    assert there.sql("SELECT * FROM few").status == 400
    assert not file.exists()
    audit = "SELECT head, outcome FROM statement_audit ORDER BY id DESC LIMIT 3"
    assert rows(there.sql(audit)) == [
        ["DROP VIEW FEW", "ok"],
        ["CREATE OR REPLACE", "ok"],
        ["CREATE VIEW FEW", "conflict"],
    ]


@pytest.mark.parametrize(
    ("text", "status", "why"),
    [
        ("SELECT 1", 400, "not a statement of this node"),
        ("MERGE INTO logs USING t ON true", 400, "not a statement of this node"),
        ("INSERT INTO logs VALUES (1)", 400, "no keyed table logs"),
        ("CREATE VIEW logs AS SELECT 1", 409, "name of a table"),
        ("CREATE VIEW v AS SELECT * FROM nowhere", 400, "no table nowhere"),
        ("CREATE VIEW v AS SELECT * FROM v", 400, "refers to itself"),
        ("DROP VIEW nothing", 400, "no view nothing"),
        ("DROP TABLE logs", 400, "no table logs"),
        ("LIST @s/../x", 400, "without .."),
    ],
)
def test_what_is_refused(there: Served, text: str, status: int, why: str) -> None:
    """A refusal says why, and nothing has changed."""
    said = send(there, text)
    assert (said.status, why in said.message) == (status, True), said.body
    assert rows(send(there, "SHOW DEFINITIONS")) == []


@pytest.mark.parametrize(
    "text",
    [
        "CREATE VIEW v AS SELECT 1",
        "DROP VIEW v",
        "COPY INTO t FROM @s",
        "COPY (SELECT 1) TO 'file.csv'",
        "SHOW VIEWS",
        "LIST @s",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
        "SELECT 1; CREATE VIEW v AS SELECT 1",
        "EXPLAIN CREATE VIEW v AS SELECT 1",
        "WITH a AS (CREATE VIEW v AS SELECT 1) SELECT 1",
    ],
)
def test_the_reading_door_defines_nothing(there: Served, text: str) -> None:
    """A statement sent as a query is refused."""
    assert there.sql(text).status == 400
    assert rows(send(there, "SHOW DEFINITIONS")) == []


def test_statements_have_tokens_of_their_own(tmp_path: Path) -> None:
    """Who may only read may not define; who may define may read; tokens are not in the audit."""
    reader, definer = "reader-reader-reader", "definer-definer-definer"
    (tmp_path / "readers").write_text(reader)
    (tmp_path / "definers").write_text(definer)
    serve = {
        "token_file": str(tmp_path / "readers"),
        "statements_token_file": str(tmp_path / "definers"),
    }
    with served(tmp_path / "data", serve=serve) as opened:
        text = "CREATE VIEW v AS SELECT 1 AS one"
        assert send(opened, text).status == 401
        assert send(opened, text, Authorization=f"Bearer {reader}").status == 401
        assert send(opened, text, Authorization=f"Bearer {definer}").status == 200
        for token in (reader, definer):
            node = frazil.connect(opened.url, token=token)
            assert node.sql("SELECT one FROM v").fetchall() == [(1,)]
        (who,) = node.sql("SELECT DISTINCT who FROM statement_audit").fetchall()
        assert who[0].startswith("token ") and definer not in who[0]


def test_the_door_is_closed_beyond_loopback() -> None:
    """Without tokens of its own it is open to this machine only."""
    auth = Auth(tokens=(b"reader-reader-reader",))
    public = IngestConfig(host="0.0.0.0", insecure=True)
    assert statements_auth(auth, ServeConfig(), public) is None
    assert statements_auth(auth, ServeConfig(), IngestConfig()) is auth


def test_a_closed_door_says_so(tmp_path: Path) -> None:
    """403, and which setting opens it; reading works."""
    ingest = {"host": "0.0.0.0", "insecure": True}
    with served(tmp_path / "data", ingest=ingest) as opened:
        said = send(opened, "SHOW VIEWS")
        assert (said.status, "serve.statements_token_file" in said.message) == (403, True)
        assert opened.sql("SELECT 1").status == 200


def test_the_client_and_an_open_folder_execute_alike(there: Served) -> None:
    """`execute` of both returns the same rows and raises the same errors."""
    client = frazil.connect(there.url)
    for node in (client, there.embedded):
        assert isinstance(node, frazil.client.Client | frazil.embedded.Embedded)
        node.execute("CREATE VIEW one AS SELECT 1 AS a").arrow()
        with pytest.raises(Conflict):
            node.execute("CREATE VIEW one AS SELECT 1 AS a")
        with pytest.raises(Malformed):
            node.execute("SELECT 1")
        with pytest.raises(Rejected, match="read-only"):
            node.sql("DROP VIEW one").arrow()
        node.execute("DROP VIEW one").arrow()


def test_sql_command_sends_each_text_to_its_door(
    there: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    """One text with queries and statements."""
    text = "CREATE VIEW pair AS SELECT 1 AS a; SELECT a + 41 AS answer FROM pair; DROP VIEW pair;"
    assert main(["sql", "--url", there.url, text]) == 0
    assert "42" in capsys.readouterr().out


def test_apply_makes_a_node_have_a_folder(
    there: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Views in an order that works; a second run changes nothing; prune drops the rest."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.sql").write_text("-- over z\nCREATE VIEW a AS SELECT x + 1 AS y FROM z;\n")
    (tmp_path / "sub/z.sql").write_text("CREATE OR REPLACE VIEW z AS SELECT 1 AS x")
    command = ["apply", "--url", there.url, str(tmp_path)]
    assert main([*command, "--dry-run"]) == 0
    assert "create view z\n" in capsys.readouterr().out
    assert rows(send(there, "SHOW DEFINITIONS")) == []
    assert main(command) == 0
    assert rows(there.sql("SELECT y FROM a")) == [[2]]
    capsys.readouterr()
    assert main(command) == 0
    assert "Nothing to change" in capsys.readouterr().out
    (tmp_path / "sub/z.sql").write_text("CREATE VIEW z AS SELECT 2 AS x")
    (tmp_path / "a.sql").unlink()
    assert main([*command, "--prune"]) == 0
    out = capsys.readouterr().out
    assert "-CREATE VIEW z AS SELECT 1 AS x" in out and "drop view a" in out
    assert [row[1] for row in rows(send(there, "SHOW DEFINITIONS"))] == ["z"]
    (tmp_path / "b.sql").write_text("DROP VIEW z")
    assert main(command) != 0
    (tmp_path / "b.sql").unlink()
    (tmp_path / "sub/z.sql").unlink()
    assert main([*command, "--prune", "--json"]) == 0
    assert rows(send(there, "SHOW DEFINITIONS")) == []
