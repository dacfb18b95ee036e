"""Demo data by a button: one at a time, bounded, stopped, ended with the node, refused politely."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.serve.served import Served, served

LOOKS_MAX = 3000
TOKEN = "a-token-of-enough-letters"


def wait_until_idle(node: Served) -> dict[str, Any]:
    for _ in range(LOOKS_MAX):
        found: dict[str, Any] = node.ask("GET", "/api/v1/demo").json
        if found["state"] == "idle":
            return found
        node.rooms.clock.sleep(0.02)
    raise AssertionError("the demo does not end")


def test_only_one_demo_runs_and_reports_its_totals(tmp_path: Path) -> None:
    """What it says is acknowledged is stored."""
    with served(tmp_path) as node:
        assert node.ask("GET", "/api/v1/demo").json["state"] == "idle"
        asked = {"seconds": 1, "backfill_minutes": 1, "rate": 2}
        begun = node.ask("POST", "/api/v1/demo", asked)
        assert (begun.status, begun.json["state"]) == (200, "running")
        again = node.ask("POST", "/api/v1/demo", asked)
        assert again.status == 409
        assert "already" in again.message
        done = wait_until_idle(node)
        assert done["trouble"] is None
        assert done["acknowledged"]["spans"] > 10
        for _ in range(LOOKS_MAX):
            (stored,) = node.sql("SELECT count(*) FROM spans").json["rows"][0]
            if stored == done["acknowledged"]["spans"]:
                break
            node.rooms.clock.sleep(0.02)
        assert stored == done["acknowledged"]["spans"]


def test_a_demo_can_be_stopped(tmp_path: Path) -> None:
    """And there is no harm in stopping what does not run."""
    with served(tmp_path) as node:
        assert node.ask("POST", "/api/v1/demo/stop", {}).json["state"] == "idle"
        node.ask("POST", "/api/v1/demo", {"seconds": 600, "backfill_minutes": 0, "rate": 1})
        assert node.ask("POST", "/api/v1/demo/stop", {}).json["state"] == "stopping"
        assert wait_until_idle(node)["seconds"] == 600


def test_a_demo_ends_with_the_node(tmp_path: Path) -> None:
    with served(tmp_path) as node:
        node.ask("POST", "/api/v1/demo", {"seconds": 600, "backfill_minutes": 0, "rate": 1})
        process = node.api._handler.demo._process
        assert process is not None
    assert process.returncode is not None


@pytest.mark.parametrize(
    "asked",
    [{"seconds": 0}, {"seconds": 601}, {"backfill_minutes": 61}, {"rate": 0}, {"endpoint": "x"}],
)
def test_demo_parameters_are_limited(tmp_path: Path, asked: dict[str, Any]) -> None:
    with served(tmp_path) as node:
        assert node.ask("POST", "/api/v1/demo", asked).status == 400
        assert node.ask("GET", "/api/v1/demo").json["state"] == "idle"


def test_the_demo_is_refused_if_otlp_needs_a_token(tmp_path: Path) -> None:
    """Clients that may read may not be allowed to send."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{TOKEN}\n")
    with served(tmp_path / "data", ingest={"token_file": str(tokens)}) as node:
        known = {"Authorization": f"Bearer {TOKEN}"}
        refused = node.ask("POST", "/api/v1/demo", {}, known)
        assert refused.status == 503
        assert "frazil demo --endpoint http://127.0.0.1:" in refused.message
        assert node.ask("GET", "/api/v1/demo", headers=known).json["refusal"] == refused.message
        assert node.ask("GET", "/api/v1/status", headers=known).json["ingest"]["needs_token"]
