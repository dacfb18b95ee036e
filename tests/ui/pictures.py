"""Take the screenshots of the docs: every screen, dark and light, of a node with the shop.

python -m tests.ui.pictures            all screens, into docs/pictures
python -m tests.ui.pictures logs sql   only these
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

import frazil
from tests.cli.commands.test_ask_a_node import wait_for
from tests.clients.node import COMMAND, Node
from tests.serve.kafka_node import PARTITIONS, TOPIC, billing, create, produce_orders
from tests.ui.browser import chromium
from tests.ui.conftest import send_past
from tests.ui.helpers.page import IS_IDLE, THEMES, eventually, open_page

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
WIDTH, HEIGHT = 1440, 900
TREND_POINTS = 10
"""Status samples in a sparkline of the pipeline, one every two seconds."""
IDLE_MS = 20_000
ORDERS = 120
LIVE_SPANS = 5000
"""New spans between the first and the second snapshot."""

Show = Callable[[Page, str], None]

SLOWEST = """SELECT service_name, name, count(*) AS spans,
  round(percentile(duration_nano, 0.5) / 1e6, 1) AS p50_ms,
  round(percentile(duration_nano, 0.99) / 1e6, 1) AS p99_ms
FROM spans
WHERE time > now() - INTERVAL '1 hour' AND kind = 'SERVER'
GROUP BY 1, 2 ORDER BY p99_ms DESC LIMIT 20"""
WHY = "no answer within 1500 ms"
"""Message of the failure that opens the shop's story."""


def _address(path: str, **query: str) -> Show:
    more = f"?{urlencode(query)}" if query else ""
    return lambda page, trace_id: _open(page, path.format(trace=trace_id) + more)


def _open(page: Page, path: str) -> None:
    page.goto(path)
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def _trace(page: Page, trace_id: str) -> None:
    _open(page, f"/trace/{trace_id}")
    expect(page.get_by_role("treegrid").get_by_role("row").first).to_be_visible()
    page.keyboard.press("e")
    page.keyboard.press("e")
    page.keyboard.press("Enter")


def _map(page: Page, _: str) -> None:
    _open(page, "/services?from=30m")
    page.get_by_role("tab", name="Map").click()


def _pipeline(page: Page, _: str) -> None:
    _open(page, "/pipeline")
    page.wait_for_function(
        "(points) => [...document.querySelectorAll('#screen svg path')]"
        ".some((path) => (path.getAttribute('d') ?? '').split('L').length >= points)",
        arg=TREND_POINTS,
    )


def _volume(page: Page, _: str) -> None:
    """Distinct values are counted last."""
    _open(page, "/volume?from=30m")
    expect(page.get_by_role("cell", name="…")).to_have_count(0)


def _topics(page: Page, _: str) -> None:
    """A topic, with one message open."""
    _open(page, "/topic/orders?live=0&open=1:20")
    expect(page.get_by_role("region", name="Value")).to_contain_text("sku")


def _dashboard(page: Page, _: str) -> None:
    """Create the dashboard for the first picture and reuse it for the second."""
    _open(page, "/dashboards")
    make = page.get_by_role("main").get_by_role("button", name="New dashboard").last
    there = page.get_by_role("link", name="Shop").first
    expect(there.or_(make).first).to_be_visible()
    if there.is_visible():
        there.click()
    else:
        make.click()
        page.get_by_label("Shop").check()
        page.get_by_role("button", name="Create").click()
    expect(page).to_have_url(re.compile("/dashboard/"))


SCREENS: dict[str, Show] = {
    "start": _address("/"),
    "logs": _address("/logs", **{"from": "30m"}),
    "traces": _address("/traces", **{"from": "30m"}),
    "trace": _trace,
    "services": _address("/services", **{"from": "30m"}),
    "map": _map,
    "explore": _address(
        "/explore",
        metric="http.server.request.duration",
        agg="p95",
        by="service_name",
        **{"from": "20m"},
    ),
    "dashboard": _dashboard,
    "topics": _topics,
    "sql": _address("/sql", q=SLOWEST),
    "pipeline": _pipeline,
    "lake": _address("/lake", table="spans"),
    "volume": _volume,
}


@contextmanager
def _customers(node: Node) -> Iterator[None]:
    """Keep the shop sending."""
    endpoint = f"http://127.0.0.1:{node.http_port}"
    options = ("--backfill", "0", "--rate", "20", "--seconds", "3600", "--seed", "8")
    shop = subprocess.Popen(
        [*COMMAND, "demo", "--endpoint", endpoint, *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        shop.terminate()
        shop.wait()


def main(names: list[str]) -> int:
    """Take the pictures."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        node = stack.enter_context(Node(Path(scratch) / "data"))
        send_past(node)
        create(node, TOPIC, PARTITIONS)
        produce_orders(node, 0, ORDERS)
        stack.enter_context(billing(node, ORDERS // 2))
        client = frazil.connect(node.url)
        client.flush()
        stack.enter_context(_customers(node))
        before = client.ask("SELECT count(*) FROM spans").to_pylist()[0]
        wait_for(node, f"SELECT 1 FROM spans OFFSET {next(iter(before.values()))}", LIVE_SPANS)
        client.flush()
        failures = client.get("/api/v1/failures", {"since": "1h"})["failures"]
        trace_id = next(f["last_trace_id"] for f in failures if f["message"] == WHY)
        browser = stack.enter_context(chromium())
        for theme in THEMES:
            for name in names or SCREENS:
                with open_page(browser, node.url, width=WIDTH, height=HEIGHT, theme=theme) as page:
                    SCREENS[name](page, trace_id)
                    page.wait_for_function(IS_IDLE)
                    _take(page, PICTURES / f"{name}-{theme}.png")
    return 0


def _take(page: Page, path: Path) -> None:
    """Save a screenshot once all queries have results, and two in a row are equal: all charts are
    drawn. A screen that follows something is never idle."""
    with suppress(PlaywrightTimeout):
        page.wait_for_load_state("networkidle", timeout=IDLE_MS)
    previous = b""

    def is_still() -> bool:
        nonlocal previous
        before, previous = previous, page.screenshot(animations="disabled")
        return before == previous

    eventually(page, is_still)
    path.write_bytes(previous)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
