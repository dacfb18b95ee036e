"""One million log records on the logs screen: smooth scrolling and memory.

The records are sent over OTLP. Chromium then scrolls through the whole list: by wheel, by scrollbar
to the middle, by key to the end. A frame is the time between two animation frames; the peer is the
same page at rest. Prints one JSON line last; exits 1 when a bar is missed.
"""

from __future__ import annotations

import datetime
import http.client
import json
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import CDPSession, Page

import frazil
from bench.log import scratch_folder
from bench.shop import BEGIN_NS, HOUR_NS, Shop
from bench.start import Case, Running, case_of
from tests.ui.browser import chromium

ROWS = 1_000_000
SENDERS = 4
WAIT_S_MAX = 300.0
WIDTH, HEIGHT = 1280, 800
TURNS = 150
TURN_PIXELS = 300
PEER_FRAMES = 120
FRAME_MS_MAX = 33.0
HEAP_MB_MAX = 150.0
LIST = '[role="list"][aria-label="Log records"]'

RECORD = """() => {
    window.frames_ms = [];
    let last = performance.now();
    const tick = (now) => {
        window.frames_ms.push(now - last);
        last = now;
        window.recording = requestAnimationFrame(tick);
    };
    window.recording = requestAnimationFrame(tick);
}"""
STOP = "() => { cancelAnimationFrame(window.recording); return window.frames_ms.slice(1); }"
NEXT_FRAME = "() => new Promise((resolve) => requestAnimationFrame(() => resolve()))"
JUMP = """([list, share]) => {
    const box = document.querySelector(list);
    box.scrollTop = share * (box.scrollHeight - box.clientHeight);
}"""
SEEN = """(list) => {
    const box = document.querySelector(list).getBoundingClientRect();
    const rows = [...document.querySelectorAll(list + ' [role="listitem"]')].filter((row) => {
        const { top, bottom } = row.getBoundingClientRect();
        return bottom > box.top && top < box.bottom;
    });
    return rows.map((row) => ({
        place: Number(row.getAttribute("aria-posinset")),
        isHere: row.textContent.trim() !== "…",
    }));
}"""


def fill(port: int, url: str) -> None:
    """Send a million records as SDKs do; return once SQL sees all of them."""

    def send(body: bytes) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while True:
            headers = {"Content-Type": "application/x-protobuf"}
            connection.request("POST", "/v1/logs", body, headers)
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                break
            assert answer.status in (429, 503), answer.status
            time.sleep(float(answer.headers.get("Retry-After", "1")))
        connection.close()

    with ThreadPoolExecutor(SENDERS) as senders:
        bodies = (body for topic, body in Shop(logs=ROWS, spans=0).requests())
        for _ in senders.map(send, bodies):
            pass
    node, end = frazil.connect(url), time.monotonic() + WAIT_S_MAX
    while node.ask("SELECT count(*) AS n FROM logs")["n"][0].as_py() < ROWS:
        assert time.monotonic() < end, "the node does not show all records"
        time.sleep(0.5)


def address(url: str) -> str:
    begin, end = (
        datetime.datetime.fromtimestamp(ns / 1e9, datetime.UTC).isoformat()
        for ns in (BEGIN_NS - HOUR_NS, BEGIN_NS + 2 * HOUR_NS)
    )
    times = {"from": begin.replace("+00:00", "Z"), "to": end.replace("+00:00", "Z")}
    return f"{url}/logs?{urlencode(times)}"


def turn(page: Page, turns: int, pixels: int) -> None:
    """Scroll by wheel, a little per frame."""
    for _ in range(turns):
        page.mouse.wheel(0, pixels)
        page.evaluate(NEXT_FRAME)


def await_rows(page: Page) -> list[dict[str, Any]]:
    """Wait until all visible rows are loaded."""
    end = time.monotonic() + WAIT_S_MAX
    while True:
        seen: list[dict[str, Any]] = page.evaluate(SEEN, LIST)
        if seen and all(row["isHere"] for row in seen):
            return seen
        assert time.monotonic() < end, "rows that are seen do not come"
        time.sleep(0.05)


def heap_mb(session: CDPSession) -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    found = {each["name"]: float(each["value"]) for each in metrics}
    return found["JSHeapUsedSize"] / 2**20


def scroll(page: Page, session: CDPSession) -> tuple[list[float], float]:
    """Scroll through everything. Returns frame times and peak memory."""
    page.locator(LIST).hover()
    heaps = [heap_mb(session)]
    page.evaluate(RECORD)
    turn(page, TURNS, TURN_PIXELS)
    heaps.append(heap_mb(session))
    for share in (0.1, 0.25, 0.75, 0.5):
        page.evaluate(JUMP, [LIST, share])
        middle = await_rows(page)[0]["place"]
        assert abs(middle / ROWS - share) < 0.01, (share, middle)
        turn(page, TURNS // 5, TURN_PIXELS)
        heaps.append(heap_mb(session))
    page.locator(LIST).focus()
    page.keyboard.press("End")
    assert await_rows(page)[-1]["place"] == ROWS
    turn(page, TURNS, -TURN_PIXELS)
    heaps.append(heap_mb(session))
    frames: list[float] = page.evaluate(STOP)
    return frames, max(heaps)


def idle_frames(page: Page) -> list[float]:
    page.evaluate(RECORD)
    for _ in range(PEER_FRAMES):
        page.evaluate(NEXT_FRAME)
    frames: list[float] = page.evaluate(STOP)
    return frames


def share_of(frames: list[float], percent: int) -> float:
    return statistics.quantiles(frames, n=100, method="inclusive")[percent - 1]


def main() -> int:
    cases: list[Case] = []
    with scratch_folder() as scratch, chromium() as browser:
        node = Running(scratch / "data")
        url = f"http://127.0.0.1:{node.ready['http_port']}"
        fill(node.ready["otlp_http_port"], url)
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.set_default_timeout(WAIT_S_MAX * 1000)
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        begin = time.perf_counter()
        page.goto(address(url))
        page.locator(f"{LIST} [role=listitem]").first.wait_for()
        first_ms = (time.perf_counter() - begin) * 1000
        page.get_by_text(f"{ROWS:,} records").wait_for()
        counted_ms = (time.perf_counter() - begin) * 1000
        idle = idle_frames(page)
        frames, heap = scroll(page, session)
        cases.append(
            case_of("frame, p95", share_of(frames, 95), share_of(idle, 95), FRAME_MS_MAX, "ms")
        )
        cases.append(case_of("heap, most", heap, None, HEAP_MB_MAX, "MB"))
        told = {
            "frames": len(frames),
            "p50_ms": round(share_of(frames, 50), 1),
            "p99_ms": round(share_of(frames, 99), 1),
            "max_ms": round(max(frames), 1),
            "first_rows_ms": round(first_ms),
            "counted_ms": round(counted_ms),
        }
        node.stop()
    print(json.dumps({"bench": "page_logs", "rows": ROWS, **told, "cases": cases}))
    return 0 if all(case["ok"] for case in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
