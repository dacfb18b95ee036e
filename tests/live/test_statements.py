"""Definitions of a real node survive kill -9, and everybody sees them."""

from __future__ import annotations

from pathlib import Path

import frazil
from tests.clients.node import Node


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
