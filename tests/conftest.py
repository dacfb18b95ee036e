"""What every test shares: how Hypothesis searches, how Java compiles. Fixtures live next to their
tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from frazil.query.run.fork_client import FORK_SERVER

# No deadline: a slow machine is not a broken promise. The blob replays a failure elsewhere.
settings.register_profile("frazil", deadline=None, print_blob=True)
settings.load_profile("frazil")

# Tests start many Sparks that live for seconds: compiling their code well nearly doubles the
# processor time that they take.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")

# Tests fork only to start other programs, as a node does: gRPC need not survive it.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")


@pytest.fixture(scope="session", autouse=True)
def _fork_server() -> Iterator[None]:
    """Keep the process that query workers are forked from: it takes a second to load."""
    FORK_SERVER.acquire()
    yield
    FORK_SERVER.release()
