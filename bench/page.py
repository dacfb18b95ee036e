"""The web page: download size and time to first paint.

All files of the page, compressed as sent, and the first paint of each screen in Chromium with an
empty cache, on a node with demo data. The peer is the first paint of an empty page from the same
node. Prints one JSON line last; exits 1 when a bar is missed.
"""

from __future__ import annotations

import gzip
import json
import statistics
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser

from bench.log import scratch_folder
from bench.start import Running, case_of
from tests.ui.browser import chromium

BUILT = Path(__file__).parents[1] / "src" / "frazil" / "serve" / "built"
SCREENS = ("", "logs", "traces", "services", "explore", "dashboards", "sql", "pipeline", "lake")
ROUNDS = 3
BYTES_MAX = 300 * 1024
PAINT_MS_MAX = 1000.0
PAINT = """() => new Promise((resolve) => {
    const seen = (list) => {
        const entry = list.find((each) => each.name === "first-contentful-paint");
        if (entry) resolve(entry.startTime);
    };
    new PerformanceObserver((list) => seen(list.getEntries()))
        .observe({ type: "paint", buffered: true });
})"""


def packed_bytes() -> int:
    files = [path for path in BUILT.rglob("*") if path.is_file() and not path.name.startswith(".")]
    assert files, f"there is no page in {BUILT}; run `make ui`"
    return sum(len(gzip.compress(path.read_bytes(), 9)) for path in files)


def paint_ms(browser: Browser, url: str) -> float:
    """First paint of a page with an empty cache."""
    times = []
    for _ in range(ROUNDS):
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        page = context.new_page()
        page.goto(url)
        times.append(float(page.evaluate(PAINT)))
        context.close()
    return statistics.median(times)


def main() -> int:
    cases = [case_of("all files of the page, packed", packed_bytes(), None, BYTES_MAX, "bytes")]
    with scratch_folder() as scratch, chromium() as browser:
        node = Running(scratch / "data")
        url = f"http://127.0.0.1:{node.ready['http_port']}"
        endpoint = f"http://127.0.0.1:{node.ready['otlp_http_port']}"
        demo = ("demo", "--endpoint", endpoint, "--backfill", "20", "--seconds", "0.1")
        subprocess.run([sys.executable, "-m", "frazil", *demo], check=True, capture_output=True)
        peer = paint_ms(browser, f"{url}/livez")
        for screen in SCREENS:
            name = f"first paint of /{screen}"
            cases.append(
                case_of(name, paint_ms(browser, f"{url}/{screen}"), peer, PAINT_MS_MAX, "ms")
            )
        node.stop()
    print(json.dumps({"bench": "page", "cases": cases}))
    return 0 if all(case["ok"] for case in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
