"""The API's description: it is valid, and whatever it allows or forbids, a node answers as
described: never with a failure of its own, never late."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from schemathesis.specs.openapi import definitions

import frazil
from tests.clients.node import Node
from tests.serve.shop import send_shop

SEED = 20261116
EXAMPLES = 5
"""Made up for each endpoint, besides those for the limits of each parameter."""
LATEST_S = 40
"""A bit longer than query.timeout_ms: no answer takes longer, whatever is asked."""
RUN_S = 300
CASES_MIN = 1000
"""Fewer than that, and it has not asked what it should."""
NOT_ASKED = ("/api/v1/tail", "/api/v1/flush", "/api/v1/maintain", "/api/v1/demo")
"""The first never ends; two start Spark, and the last fills the node with rows while others are
asked about theirs. They have tests of their own."""
SETTINGS = """
[checks]
# What the description allows may still be no SQL, or ask for too many steps.
positive_data_acceptance.enabled = false
ignored_auth.enabled = false
# There is no lake here. Whether the node itself has failed is seen in its log.
not_a_server_error.expected-statuses = ["2XX", "4XX", "503"]
negative_data_rejection.expected-statuses = ["4XX"]

[[operations]]
include-path = "/api/v1/logs/around"
parameters = {{ at = "{cursor}" }}

[[operations]]
include-path = "/api/v1/traces/{{trace_id}}"
parameters = {{ trace_id = "{trace_id}" }}
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node without a lake, with logs, spans and metrics of a shop."""
    folder = tmp_path_factory.mktemp("schema")
    settings = folder / "frazil.toml"
    settings.write_text("[lake]\nenabled = false\n")
    with Node(folder / "data", "--config", str(settings)) as opened:
        remote = frazil.connect(opened.url)
        send_shop(opened.http_port, lambda text: remote.sql(text).fetchall())
        yield opened
        assert opened.stop() == 0


@pytest.fixture(scope="module")
def description(node: Node) -> dict[str, Any]:
    found: dict[str, Any] = frazil.connect(node.url).get("/openapi.json")
    return found


def test_the_description_is_valid_openapi(description: dict[str, Any]) -> None:
    """By the schema that the specification comes with."""
    definitions.OPENAPI_31_VALIDATOR.validate(description)


def test_everything_is_described(description: dict[str, Any]) -> None:
    """Each endpoint has a name of its own, a summary, a group; each parameter says what it is."""
    operations = [each for path in description["paths"].values() for each in path.values()]
    names = [each["operationId"] for each in operations]
    assert len(names) == len(set(names))
    groups = {each["name"] for each in description["tags"]}
    for each in operations:
        assert each["summary"].endswith(".")
        assert groups.issuperset(each["tags"])
        for parameter in each.get("parameters", []):
            assert parameter["description"], (each["operationId"], parameter["name"])
    schemas = description["components"]["schemas"]
    assert all("description" in each for each in schemas["SqlRequest"]["properties"].values())
    nanos = schemas["LogRow"]["properties"]["time_unix_nano"]
    assert nanos == {"type": "integer", "format": "int64"}


def test_responses_match_the_description(node: Node, tmp_path: Path) -> None:
    """Whatever it is asked: what the description allows, what it forbids, and its limits."""
    remote = frazil.connect(node.url)
    settings = tmp_path / "schemathesis.toml"
    settings.write_text(
        SETTINGS.format(
            cursor=remote.get("/api/v1/logs", {"limit": 1})["cursor"],
            trace_id=remote.get("/api/v1/traces", {"limit": 1})["traces"][0]["trace_id"],
        )
    )
    program = "from schemathesis.cli import schemathesis; schemathesis()"
    command = [sys.executable, "-c", program, "--config-file", str(settings)]
    command += ["run", f"{node.url}/openapi.json", "--seed", str(SEED)]
    command += ["--max-examples", str(EXAMPLES), "--continue-on-failure", "--no-color"]
    command += ["--phases", "examples,coverage,fuzzing", "--generation-database", "none"]
    command += ["--max-response-time", str(LATEST_S), "--request-timeout", str(LATEST_S)]
    for path in NOT_ASKED:
        command += ["--exclude-path", path]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, timeout=RUN_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout.partition("Test cases:")[2])
    assert passed, done.stdout
    assert int(passed[1]) >= CASES_MIN
    assert "request failed" not in node.errors()
