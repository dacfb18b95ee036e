"""One server for the tests of a file, each with a schema of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.connectors.postgres.server import PostgresServer, postgres_server, unavailable


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    if reason := unavailable():
        pytest.skip(reason)
    with postgres_server() as server:
        yield server
