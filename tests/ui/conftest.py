"""A node that has seen the shop, and a page in front of it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.cli.commands.test_ask_a_node import wait_for
from tests.clients.node import COMMAND, Node
from tests.ui import browser as browsers
from tests.ui.watched import watched

SEED = 7
PAST_MINUTES = 20
"""Long enough for the story that the shop tells: a deployment that goes wrong, and its end."""
WIDTH, HEIGHT = 1280, 800


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if browsers.found() is None:
        pytest.skip(f"there is no Chromium: {browsers.SKIPPED}")
    with browsers.chromium() as launched:
        yield launched


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with the shop's past in it. Nothing else comes, and no test may change it."""
    folder = tmp_path_factory.mktemp("ui") / "data"
    with Node(folder, "--set", "lake.enabled=false") as started:
        send_past(started)
        yield started


def send_past(node: Node, seed: int = SEED) -> None:
    """The same past of the shop every time; it ends now."""
    endpoint = f"http://127.0.0.1:{node.http_port}"
    options = ("--backfill", str(PAST_MINUTES), "--seconds", "0.1", "--seed", str(seed))
    subprocess.run(
        [*COMMAND, "demo", "--endpoint", endpoint, *options],
        check=True,
        capture_output=True,
        timeout=300,
    )
    wait_for(node, "SELECT 1 FROM spans LIMIT 1000", 1000)


@pytest.fixture
def page(browser: Browser, node: Node) -> Iterator[Page]:
    """A page of a fresh browser in front of that node. It must not complain about anything."""
    with watched(browser, node.url, width=WIDTH, height=HEIGHT) as opened:
        yield opened
