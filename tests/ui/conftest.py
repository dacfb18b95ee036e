"""One browser and one node with the shop's telemetry per worker; a fresh context per test."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

import frazil
from tests.clients.node import COMMAND, Node
from tests.ui.browser import SKIPPED, browser_path, chromium
from tests.ui.helpers.page import open_page

SEED = 7
PAST_MINUTES = 20
"""Long enough to contain the shop's failed deployment from beginning to end."""
POLL_S = 0.1
WIDTH, HEIGHT = 1280, 800


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if browser_path() is None:
        pytest.skip(f"no Chromium found: {SKIPPED}")
    with chromium() as launched:
        yield launched


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with the shop's past. Tests only read from it."""
    folder = tmp_path_factory.mktemp("ui") / "data"
    with Node(folder, "--set", "lake.enabled=false") as started:
        send_past(started)
        yield started


def send_past(node: Node, seed: int = SEED) -> None:
    """Send the same past of the shop every time; it ends now."""
    endpoint = f"http://127.0.0.1:{node.http_port}"
    options = ("--backfill", str(PAST_MINUTES), "--seconds", "0.1", "--seed", str(seed))
    subprocess.run(
        [*COMMAND, "demo", "--endpoint", endpoint, *options], check=True, capture_output=True
    )
    wait_until_queryable(node)


def wait_until_queryable(node: Node) -> None:
    """Wait until the hot tier has every record that the log has made durable."""
    client = frazil.connect(node.url)
    pause = threading.Event()
    while any(
        partition["hot_lag_offsets"]
        for topic in client.get("/api/v1/status")["log"]["topics"]
        for partition in topic["partitions"]
    ):
        pause.wait(POLL_S)


@pytest.fixture
def page(browser: Browser, node: Node) -> Iterator[Page]:
    """A page of that node in a fresh browser context."""
    with open_page(browser, node.url, width=WIDTH, height=HEIGHT) as opened:
        yield opened
