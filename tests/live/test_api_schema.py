"""The OpenAPI description is valid, and a node responds to all requests as described."""

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
"""Random requests per endpoint, besides those at the limits of each parameter."""
LATEST_S = 40
"""Maximum response time: a little longer than query.timeout_ms."""
RUN_S = 300
CASES_MIN = 1000
"""Fewer test cases mean that schemathesis skipped endpoints."""
EXCLUDED = (
    "/api/v1/tail",
    "/api/v1/topics/{topic}/tail",
    "/api/v1/flush",
    "/api/v1/maintain",
    "/api/v1/demo",
    "/api/v1/tables/{table}/rows",
)
"""The first two never end, two start Spark, one adds rows during other requests, and the body of
the last is not JSON. They have their own tests."""
SETTINGS = """
[checks]
# A request that matches the description may still be invalid SQL, or have too many steps.
positive_data_acceptance.enabled = false
ignored_auth.enabled = false
# There is no lake here. Failures of the node itself are found in its log.
not_a_server_error.expected-statuses = ["2XX", "4XX", "503"]
negative_data_rejection.expected-statuses = ["4XX"]

[[operations]]
include-path = "/api/v1/logs/around"
parameters = {{ at = "{cursor}" }}

[[operations]]
include-path = "/api/v1/traces/{{trace_id}}"
parameters = {{ trace_id = "{trace_id}" }}

[[operations]]
include-path = "/api/v1/topics/{{topic}}/messages"
parameters = {{ topic = "otlp_logs" }}

[[operations]]
include-path-regex = "/api/v1/tables/.table./"
parameters = {{ table = "fuzzed", key = "1" }}
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
        columns = [{"name": "id", "type": "int64"}, {"name": "name", "type": "string"}]
        remote.call("PUT", "/api/v1/tables/fuzzed", {"columns": columns, "key": ["id"]})
        remote.table("fuzzed").upsert([{"id": 1, "name": "a"}, {"id": 2}])
        yield opened
        assert opened.stop() == 0


@pytest.fixture(scope="module")
def description(node: Node) -> dict[str, Any]:
    found: dict[str, Any] = frazil.connect(node.url).get("/openapi.json")
    return found


def test_the_description_is_valid_openapi(description: dict[str, Any]) -> None:
    """By the JSON schema of the OpenAPI specification."""
    definitions.OPENAPI_31_VALIDATOR.validate(description)


def test_everything_is_described(description: dict[str, Any]) -> None:
    """Each endpoint has a unique name, a summary and a group; each parameter a description."""
    paths = description["paths"].values()
    operations = [operation for path in paths for operation in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names))
    groups = {tag["name"] for tag in description["tags"]}
    for operation in operations:
        assert operation["summary"].endswith(".")
        assert groups.issuperset(operation["tags"])
        for parameter in operation.get("parameters", []):
            assert parameter["description"], (operation["operationId"], parameter["name"])
    schemas = description["components"]["schemas"]
    assert all("description" in field for field in schemas["SqlRequest"]["properties"].values())
    nanos = schemas["LogRow"]["properties"]["time_unix_nano"]
    assert nanos == {"type": "integer", "format": "int64"}


def test_responses_match_the_description(node: Node, tmp_path: Path) -> None:
    """For valid requests, invalid requests and values at the limits."""
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
    for path in EXCLUDED:
        command += ["--exclude-path", path]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, timeout=RUN_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout.partition("Test cases:")[2])
    assert passed, done.stdout
    assert int(passed[1]) >= CASES_MIN
    assert "request failed" not in node.errors()
