"""Definitions of a real node survive kill -9, and everybody sees them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import frazil
from frazil.errors import Conflict, Rejected
from tests.clients.node import Node


def run_frazil(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "frazil", *arguments], capture_output=True, text=True, timeout=120
    )
    return done.stdout + done.stderr


def test_a_view_survives_a_kill(tmp_path: Path) -> None:
    """What a statement has answered is there after kill -9, and the audit goes on."""
    node = Node(tmp_path / "data", environment={"FRAZIL_LAKE__ENABLED": "false"})
    client = frazil.connect(node.url)
    client.execute("CREATE VIEW one AS SELECT 1 AS a").arrow()
    client.execute("CREATE OR REPLACE VIEW one AS SELECT 2 AS a").arrow()
    node.kill()
    node.start()
    with node:
        assert client.sql("SELECT a FROM one").fetchall() == [(2,)]
        client.execute("CREATE VIEW two AS SELECT a + 1 AS b FROM one").arrow()
        assert client.sql("SELECT b FROM two").fetchall() == [(3,)]
        audit = client.sql("SELECT id, outcome FROM statement_audit ORDER BY id").fetchall()
        assert audit == [(1, "ok"), (2, "ok"), (3, "ok")]


def test_a_keyed_table_survives_a_kill(tmp_path: Path) -> None:
    """What a statement has acknowledged is there after kill -9, also as of earlier offsets; the
    statement after it goes on from there. `frazil apply` creates the table."""
    folder = tmp_path / "definitions"
    folder.mkdir()
    (folder / "table.sql").write_text(
        "CREATE TABLE IF NOT EXISTS stock (item TEXT, n INT NOT NULL, PRIMARY KEY (item));\n"
        "CREATE VIEW low AS SELECT item FROM stock WHERE n < 5;\n"
    )
    node = Node(tmp_path / "data", environment={"FRAZIL_LAKE__ENABLED": "false"})
    client = frazil.connect(node.url)
    for wanted in ("2 of 2 definitions changed", "Nothing to change: 2 definitions"):
        done = run_frazil("apply", str(folder), "--url", node.url)
        assert wanted in done, done
    client.execute("INSERT INTO stock VALUES ('tea', 10), ('milk', 3)").arrow()
    (done,) = client.execute("UPDATE stock SET n = n - 6 WHERE item = 'tea'").arrow().to_pylist()
    assert (done["rows"], done["token"]) == (1, '{"0": 2}')
    node.kill()
    node.start()
    with node:
        assert client.sql("SELECT item FROM low ORDER BY 1").fetchall() == [("milk",), ("tea",)]
        client.execute("UPSERT INTO stock VALUES ('tea', 50)").arrow()
        client.execute("DELETE FROM stock WHERE item IN (SELECT item FROM low)").arrow()
        assert client.sql("SELECT item, n FROM stock").fetchall() == [("tea", 50)]
        past = "SELECT item, n FROM stock FOR SYSTEM_VERSION AS OF OFFSET 2 ORDER BY 1"
        assert client.sql(past).fetchall() == [("milk", 3), ("tea", 4)]
        changed = "SELECT _change, item, n FROM changes('stock', 2) ORDER BY _offset"
        assert client.sql(changed).fetchall() == [("update", "tea", 50), ("delete", "milk", 3)]
        with pytest.raises(Conflict, match="item = 'tea'"):
            client.execute("INSERT INTO stock VALUES ('tea', 1)")
        with pytest.raises(Rejected):
            client.sql("DELETE FROM stock")
        client.execute("DROP TABLE stock").arrow()
        with pytest.raises(Rejected, match="stock"):
            client.sql("SELECT * FROM low").arrow()
