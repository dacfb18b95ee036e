"""Memory, descriptors and threads of a node under a steady load.

A node as `frazil up` runs it, with a small hot tier. One process sends logs and spans at a steady
rate, another polls two dashboards over HTTP. Every second all processes of the node are measured.
Memory may fill until caches and the hot tier are full, and must then stay flat. Writes a plot as
SVG, prints one JSON line last; exits 1 when a bar is missed.

    PYTHONPATH=. python bench/steady.py --minutes 30
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import frazil
from bench.freshness import line_of, spread, talking
from bench.log import scratch_folder
from bench.shop import Shop
from frazil.client import Client
from frazil.errors import FrazilError
from tests.clients.node import FREE_PORTS

MINUTES = 4.0
RATE = 20_000
"""Records per second, of logs and spans."""
RECORDS = 500
"""Records per request."""
SPAN_SHARE = 0.25
SENDERS = 4
POLL_S = 2.0
"""Every dashboard asks for all of its panels this often."""
SAMPLE_S = 1.0
WARM_S = 60.0
"""Not counted; at most a quarter of the run."""
HOT_BYTES_MAX = 200_000_000
LOG_BYTES_MAX = 2_000_000_000
PSS_MB_MAX = 1024.0
ACKNOWLEDGED_MIN = 0.99
"""Of all records: a load that is refused proves nothing."""
GROWTH_MAX = 1.1
"""Median of the last quarter, relative to the second one."""
SLACK = {"rss_mb": 32.0, "descriptors": 16.0, "threads": 4.0}
"""What the last quarter may have beyond that."""
PLOT = Path("build/steady.svg")

PATHS = {"otlp_logs": "/v1/logs", "otlp_spans": "/v1/traces"}
SINCE = {"since": "15m"}
Ask = Callable[[Client], object]


def _sql(text: str) -> Ask:
    return lambda node: node.call("POST", "/api/v1/sql", {"sql": text, "details": True})


def _get(path: str, **parameters: object) -> Ask:
    return lambda node: node.get(f"/api/v1/{path}", {**SINCE, **parameters})


DASHBOARDS: tuple[Mapping[str, Ask], ...] = (
    {
        "rows by severity": _sql(
            "SELECT time_bucket('10 seconds', time) AS at, severity_text, count(*) AS n FROM logs "
            "WHERE time > now() - INTERVAL '15 minutes' GROUP BY 1, 2 ORDER BY 1"
        ),
        "rows by service": _sql(
            "SELECT service_name, count(*) AS n FROM logs "
            "WHERE time > now() - INTERVAL '15 minutes' GROUP BY 1 ORDER BY n DESC LIMIT 10"
        ),
        "newest errors": _get("logs", severity="ERROR", limit=100),
        "timeouts": _get("logs/histogram", query="timeout provider"),
        "routes": _get("logs/facets", name="http.route"),
    },
    {
        "services": _get("services"),
        "services over time": _get("services/series"),
        "slow traces": _get("traces", min_duration_ms=50, limit=50),
        "p95 by route": _sql(
            "SELECT name, count(*) AS n, approx_percentile_cont(duration_nano, 0.95) AS p95 "
            "FROM spans WHERE time > now() - INTERVAL '15 minutes' GROUP BY 1 ORDER BY n DESC "
            "LIMIT 20"
        ),
        "failures": _get("failures"),
    },
)

Case = dict[str, object]


# The load, in a process of its own.


def load(port: int, rate: int, seconds: float) -> None:
    """Send `rate` records per second. Print how many were acknowledged, and refused."""
    span_count = int(SPAN_SHARE * 1000)
    requests = Shop(logs=1000 - span_count, spans=span_count).current_requests()
    interval = RECORDS / rate
    lock = threading.Lock()
    begin = time.monotonic()
    sent = {"acknowledged": 0, "refused": 0}

    def send_all(sender: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        number = sender
        while (due := number * interval) < seconds:
            time.sleep(max(0.0, begin + due - time.monotonic()))
            with lock:
                topic, body = next(requests)
            head = {"Content-Type": "application/x-protobuf"}
            connection.request("POST", PATHS[topic], body, head)
            response = connection.getresponse()
            response.read()
            with lock:
                sent["acknowledged" if response.status == 200 else "refused"] += RECORDS
            number += SENDERS

    with ThreadPoolExecutor(SENDERS) as pool:
        list(pool.map(send_all, range(SENDERS)))
    took = time.monotonic() - begin
    print(json.dumps({**sent, "records_per_s": round(sent["acknowledged"] / took)}))


# The dashboards, in another.


def watch(url: str) -> None:
    """Poll both dashboards until told to stop. Print the times of their panels."""
    stop = threading.Event()
    took_ms: dict[str, list[float]] = {name: [] for panels in DASHBOARDS for name in panels}
    failures: list[str] = []

    def ask(name: str, panel: Ask) -> None:
        begin = time.monotonic()
        try:
            with frazil.connect(url) as node:
                panel(node)
        except FrazilError as error:
            failures.append(f"{name}: {error}")
        took_ms[name].append(1000 * (time.monotonic() - begin))

    def poll(panels: Mapping[str, Ask]) -> None:
        with ThreadPoolExecutor(len(panels)) as pool:
            due = time.monotonic()
            while not stop.wait(max(0.0, due - time.monotonic())):
                list(pool.map(ask, panels.keys(), panels.values()))
                due = max(due + POLL_S, time.monotonic())

    threads = [threading.Thread(target=poll, args=(panels,)) for panels in DASHBOARDS]
    for thread in threads:
        thread.start()
    print("polling", flush=True)
    sys.stdin.readline()
    stop.set()
    for thread in threads:
        thread.join()
    panels = {name: spread(times) for name, times in took_ms.items() if times}
    print(json.dumps({"panels": panels, "failures": len(failures), "first": failures[:3]}))


# What the processes of the node use.


@dataclass(slots=True)
class Sample:
    """One process, or several added up."""

    rss_mb: float = 0.0
    pss_mb: float = 0.0
    anonymous_mb: float = 0.0
    descriptors: int = 0
    threads: int = 0
    processes: int = 0

    def add(self, other: Sample) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(slots=True)
class Samples:
    """Samples by role, one per second, and the bytes on disk."""

    at_s: list[float] = field(default_factory=list)
    roles: list[dict[str, Sample]] = field(default_factory=list)
    disk_mb: list[float] = field(default_factory=list)

    def series(self, name: str, role: str | None = None) -> list[float]:
        """One measure over time, of a role, or of all but Spark."""
        return [
            float(sum(getattr(s, name) for r, s in roles.items() if _is_counted(r, role)))
            for roles in self.roles
        ]


def _is_counted(role: str, wanted: str | None) -> bool:
    return role != "spark" if wanted is None else role == wanted


def processes_of(root: int) -> dict[int, str]:
    """The role of each process of a node."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
    roles = {root: "writer"}
    found = [root]
    while found:
        parent = found.pop()
        for pid in (pid for pid, its in parents.items() if its == parent):
            roles[pid] = _role(pid, roles[parent])
            found.append(pid)
    return roles


def _role(pid: int, parent: str) -> str:
    if parent in ("fork server", "query worker"):
        return "query worker"
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return parent
    if b"frazil.query.run.fork_server" in words:
        return "fork server"
    if b"frazil.reader" in words:
        return "reader"
    return "spark"


def sample_of(pid: int) -> Sample:
    """What a process uses now; nothing, if it has ended."""
    folder = Path(f"/proc/{pid}")
    try:
        rollup = (folder / "smaps_rollup").read_text(encoding="ascii")
        status = (folder / "status").read_text(encoding="utf-8", errors="replace")
        descriptors = len(list((folder / "fd").iterdir()))
    except OSError:
        return Sample()
    size = {line.split(":")[0]: line.split()[1] for line in rollup.splitlines()[1:]}
    (threads,) = (line.split()[1] for line in status.splitlines() if line.startswith("Threads:"))
    return Sample(
        rss_mb=int(size["Rss"]) / 1024,
        pss_mb=int(size["Pss"]) / 1024,
        anonymous_mb=int(size["Anonymous"]) / 1024,
        descriptors=descriptors,
        threads=int(threads),
        processes=1,
    )


def disk_mb(folder: Path) -> float:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_blocks * 512
        except OSError:  # removed meanwhile
            continue
    return total / 1e6


def measure(root: int, folder: Path, is_done: Callable[[], bool]) -> Samples:
    """Sample once a second, until done."""
    samples = Samples()
    begin = time.monotonic()
    while not is_done():
        due = begin + (len(samples.at_s) + 1) * SAMPLE_S
        time.sleep(max(0.0, due - time.monotonic()))
        roles: dict[str, Sample] = {}
        for pid, role in processes_of(root).items():
            roles.setdefault(role, Sample()).add(sample_of(pid))
        samples.at_s.append(time.monotonic() - begin)
        samples.roles.append(roles)
        samples.disk_mb.append(disk_mb(folder))
    return samples


def run(minutes: float, *, has_lake: bool) -> tuple[Samples, dict[str, dict[str, float]]]:
    """Run a node under the load. Returns its samples, and what clients saw."""
    settings = {
        "lake.enabled": str(has_lake).lower(),
        "hot.disk_bytes_max": HOT_BYTES_MAX,
        "log.disk_bytes_max": LOG_BYTES_MAX,
        # Without a lake the log keeps everything, and would be full after minutes.
        "log.when_full": "backpressure" if has_lake else "drop_oldest",
    }
    up = [sys.executable, "-m", "frazil", "up", "--json", *FREE_PORTS]
    up += [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    with scratch_folder() as folder, talking(*up, "--data", str(folder / "data")) as node:
        at = json.loads(line_of(node))
        url = f"http://127.0.0.1:{at['http_port']}"
        words = ["load", at["otlp_http_port"], RATE, 60 * minutes]
        with (
            talking(sys.executable, __file__, "watch", url) as watcher,
            talking(sys.executable, __file__, *map(str, words)) as sender,
        ):
            line_of(watcher)
            samples = measure(node.pid, folder, lambda: sender.poll() is not None)
            sent = json.loads(line_of(sender))
            assert watcher.stdin is not None
            watcher.stdin.write("\n")
            watcher.stdin.flush()
            seen = json.loads(line_of(watcher))
    return samples, {"load": sent, "dashboards": seen}


def cases_of(samples: Samples, clients: dict[str, dict[str, float]]) -> list[Case]:
    warm_s = min(WARM_S, samples.at_s[-1] / 4)
    first = sum(at < warm_s for at in samples.at_s)
    quarter = (len(samples.at_s) - first) // 4
    pss = samples.series("pss_mb")
    peak = max(pss)
    cases: list[Case] = [
        {
            "case": "memory of all processes but Spark's",
            "ours": round(peak),
            "peer": None,
            "unit": "MB PSS, highest sample",
            "ratio": round(peak / PSS_MB_MAX, 3),
            "bar": PSS_MB_MAX,
            "ok": peak <= PSS_MB_MAX,
            "after_s": round(samples.at_s[pss.index(peak)]),
            "by_process": by_process(samples),
            "disk_mb": round(max(samples.disk_mb)),
            **clients,
        }
    ]
    sent = clients["load"]
    share = sent["acknowledged"] / (sent["acknowledged"] + sent["refused"])
    cases.append(
        {
            "case": "records acknowledged",
            "ours": round(sent["records_per_s"]),
            "peer": RATE,
            "unit": "records/s",
            "ratio": round(share, 3),
            "bar": ACKNOWLEDGED_MIN,
            "ok": share >= ACKNOWLEDGED_MIN,
        }
    )
    for name, slack in SLACK.items():
        series = samples.series(name)[first:]
        before = statistics.median(series[quarter : 2 * quarter])
        after = statistics.median(series[-quarter:])
        cases.append(
            {
                "case": f"growth of {name}",
                "ours": round(after, 1),
                "peer": round(before, 1),
                "unit": "median of the last quarter, and of the second one",
                "ratio": round(after / before, 3),
                "bar": GROWTH_MAX,
                "ok": after <= GROWTH_MAX * before + slack,
            }
        )
    for case in cases:
        print(json.dumps(case), flush=True)
    return cases


def by_process(samples: Samples) -> dict[str, dict[str, float]]:
    """The highest and the last value of each role."""
    roles = {role: None for each in samples.roles for role in each}
    return {
        role: {
            f"{name}_{word}": round(number)
            for name in Sample.__slots__
            for word, number in (
                ("max", max(samples.series(name, role))),
                ("last", samples.series(name, role)[-1]),
            )
        }
        for role in roles
    }


# The plot.

WIDTH, HEIGHT, MARGIN = 900, 180, 60
COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e")


def plot(samples: Samples) -> str:
    """Panels over time, as SVG: one line per role."""
    roles = list({role: None for each in samples.roles for role in each})
    panels = {
        name: {role: samples.series(name, role) for role in roles}
        for name in ("rss_mb", "pss_mb", "anonymous_mb", "descriptors", "threads")
    }
    panels["disk_mb"] = {"data folder": samples.disk_mb}
    parts = [
        _panel(title, lines, samples.at_s, top=number * (HEIGHT + MARGIN) + MARGIN)
        for number, (title, lines) in enumerate(panels.items())
    ]
    size = f'width="{WIDTH + 4 * MARGIN}" height="{len(panels) * (HEIGHT + MARGIN) + MARGIN}"'
    text = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{text}\n</svg>\n'
    )


def _panel(title: str, lines: dict[str, list[float]], at_s: list[float], *, top: int) -> str:
    highest = max(max(values) for values in lines.values()) or 1.0
    parts = [
        f'<text x="{MARGIN}" y="{top - 8}" font-weight="bold">{title}</text>',
        f'<rect x="{MARGIN}" y="{top}" width="{WIDTH}" height="{HEIGHT}" fill="none" '
        'stroke="#999"/>',
        f'<text x="{MARGIN - 6}" y="{top + 10}" text-anchor="end">{highest:.0f}</text>',
        f'<text x="{MARGIN - 6}" y="{top + HEIGHT}" text-anchor="end">0</text>',
        f'<text x="{MARGIN + WIDTH}" y="{top + HEIGHT + 16}" text-anchor="end">'
        f"{at_s[-1]:.0f} s</text>",
    ]
    for number, (name, values) in enumerate(lines.items()):
        color = COLORS[number % len(COLORS)]
        points = " ".join(
            f"{MARGIN + WIDTH * at / at_s[-1]:.1f},{top + HEIGHT * (1 - value / highest):.1f}"
            for at, value in zip(at_s, values, strict=True)
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}"/>')
        x, y = MARGIN + WIDTH + 10, top + 12 + 16 * number
        parts.append(f'<text x="{x}" y="{y}" fill="{color}">{name}: {values[-1]:.0f}</text>')
    return "\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--lake", action="store_true", help="append to the lake, too")
    parser.add_argument("--plot", type=Path, default=PLOT, help="where to write it")
    options = parser.parse_args()
    samples, clients = run(options.minutes, has_lake=options.lake)
    options.plot.parent.mkdir(parents=True, exist_ok=True)
    options.plot.write_text(plot(samples), encoding="utf-8")
    cases = cases_of(samples, clients)
    print(json.dumps({"bench": "steady", "cases": cases}))
    return 0 if all(case["ok"] for case in cases) else 1


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["load", port, rate, seconds]:
            load(int(port), int(rate), float(seconds))
        case ["watch", url]:
            watch(url)
        case _:
            sys.exit(main())
