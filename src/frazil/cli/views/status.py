"""The status of a node on one screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from frazil.cli.terminal.colors import BOLD, DIM, GREEN, RED, YELLOW, Colors
from frazil.cli.terminal.table import Heading, Row, table_lines
from frazil.cli.terminal.text_width import safe, shortened
from frazil.cli.terminal.units import age_text, bytes_text, count_text

BAR_COLUMNS = 20
TIGHT, FULL = 0.8, 0.95
"""From so much of a cap on a bar is yellow, and red."""
TABLES = {"logs": "logs", "traces": "spans", "metrics": "metrics"}
"""Signal -> its table; its topic is called after that."""
STATE_COLOURS = {"ok": GREEN, "degraded": YELLOW, "failed": RED}
HOT = "hot_"

Found = Mapping[str, Any]


def screen(found: Found, url: str, columns: int, paint: Colors) -> Iterator[str]:
    """All there is to see, line by line."""
    yield from _title(found, url, columns, paint)
    yield ""
    yield from table_lines(HEADINGS, list(_signals(found)), columns, paint)
    yield from _sizes(found, columns, paint)
    yield from _lake(found["lake"], columns, paint)
    yield from _subscribers(found["subscribers"], columns, paint)
    yield from _trouble(found["checks"], columns, paint)


def _title(found: Found, url: str, columns: int, paint: Colors) -> Iterator[str]:
    ready = paint("ready", GREEN) if found["is_ready"] else paint("not ready", RED, BOLD)
    ingest = found["ingest"]
    since = age_text(found["uptime_s"])
    yield (
        f"{paint('Frazil', BOLD)} {safe(found['version'])}, {safe(found['state'])} "
        f"for {since}, {ready}, pid {found['pid']}"
    )
    ports = f"OTLP/gRPC {ingest['grpc_port']}  OTLP/HTTP {ingest['http_port']}  API {safe(url)}"
    yield paint(shortened(ports, columns), DIM)
    yield paint(shortened(f"data {safe(found['data'])}", columns), DIM)


HEADINGS = [
    Heading(name="signal"),
    Heading(name="rows/s", is_number=True),
    Heading(name="bytes/s", is_number=True),
    Heading(name="requests", is_number=True),
    Heading(name="not hot yet", is_number=True),
    Heading(name="not in lake yet", is_number=True),
    Heading(name="hot rows", is_number=True),
    Heading(name="lake rows", is_number=True),
    Heading(name="refused", is_number=True),
]


def _signals(found: Found) -> Iterator[Row]:
    """A row for each signal: how fast it comes, and how far each stage is."""
    rates = {rate["signal"]: rate for rate in found["rates"]}
    topics = {topic["topic"]: topic["partitions"] for topic in found["log"]["topics"]}
    lake = {} if found["lake"] is None else {t["table"]: t for t in found["lake"]["tables"]}
    hot = {} if found["hot"] is None else found["hot"]["rows"]
    for signal in found["ingest"]["signals"]:
        name = signal["signal"]
        table = TABLES.get(name, name)
        parts = topics.get(f"otlp_{table}", [])
        rate = rates[name]
        in_lake = next((t for known, t in lake.items() if known.split(".")[-1] == table), None)
        yield (
            name,
            count_text(rate["records_per_s"]),
            bytes_text(rate["bytes_per_s"]),
            count_text(sum(part["durable_watermark"] for part in parts)),
            _lag(parts, "hot_lag_offsets"),
            _lag(parts, "lake_lag_offsets", "lake_lag_bytes"),
            count_text(hot[table]) if table in hot else "-",
            count_text(in_lake["rows"]) if in_lake is not None else "-",
            count_text(signal["refused_requests"]),
        )


def _lag(parts: Sequence[Found], name: str, size: str | None = None) -> str:
    """Requests that a stage has before it; a dash where there is no such stage."""
    known = [part[name] for part in parts if part[name] is not None]
    if not known:
        return "-"
    text = count_text(sum(known))
    if size is None or not sum(known):
        return text
    return f"{text}, {bytes_text(sum(part[size] or 0 for part in parts))}"


def _sizes(found: Found, columns: int, paint: Colors) -> Iterator[str]:
    log, hot = found["log"], found["hot"]
    yield _size("log", log["used_bytes"], log["bytes_max"], columns, paint)
    if log["syncing"] is not None:
        acknowledging = _took(found["ingest"]["acknowledging"])
        waiting = count_text(log["queue_batches"])
        said = f"{_took(log['syncing'])} to sync, {acknowledging} to acknowledge; {waiting} wait"
        yield shortened(f"            {said}", columns)
    if hot is None:
        yield paint("hot         off (hot.enabled = false)", DIM)
        return
    yield _size("hot memory", hot["memory_bytes"], hot["memory_bytes_max"], columns, paint)
    yield _size("hot disk", hot["disk_bytes"], hot["disk_bytes_max"], columns, paint)


def _took(latency: Found | None) -> str:
    """Half of them, and almost all of them; a dash when there were none."""
    return "-" if latency is None else f"{latency['p50_ms']:.3g} to {latency['p99_ms']:.3g} ms"


def _size(name: str, used: int, cap: int, columns: int, paint: Colors) -> str:
    share = min(1.0, used / cap) if cap else 0.0
    filled = max(round(share * BAR_COLUMNS), 1 if used else 0)
    colour = RED if share >= FULL else YELLOW if share >= TIGHT else GREEN
    bar = paint("█" * filled, colour) + paint("░" * (BAR_COLUMNS - filled), DIM)
    text = f"{bytes_text(used)} of {bytes_text(cap)}"
    return f"{name:11} {bar} {shortened(text, max(1, columns - BAR_COLUMNS - 13))}"


def _lake(lake: Found | None, columns: int, paint: Colors) -> Iterator[str]:
    if lake is None:
        yield paint("lake        off, or not installed", DIM)
        return
    commit = lake["last_commit"]
    said = "no commit yet"
    if commit is not None:
        said = (
            f"last commit {age_text(commit['age_s'])} ago: {safe(commit['table'])}, "
            f"{count_text(commit['added_rows'] or 0)} rows, snapshot {commit['snapshot_id']}"
        )
    yield shortened(f"lake        {said}", columns)
    files = sum(table["files"] for table in lake["tables"])
    small = sum(table["small_files"] for table in lake["tables"])
    size = sum(table["bytes"] for table in lake["tables"])
    often = f"{age_text(lake['flush_age_ms'] / 1000)} or {bytes_text(lake['flush_bytes'])}"
    yield shortened(
        f"            {count_text(files)} files ({count_text(small)} small), {bytes_text(size)}; "
        f"filled every {often}",
        columns,
    )
    spark = lake["spark"]
    pid = "" if spark["pid"] is None else f", pid {spark['pid']}"
    yield shortened(f"spark       {safe(spark['state'])}{pid}{_doing(lake['doing'])}", columns)


def _doing(doing: Found | None) -> str:
    """What is done to the tables now."""
    if doing is None:
        return ""
    table = "" if doing["table"] is None else f" ({safe(doing['table'])})"
    size = f", {bytes_text(doing['log_bytes'])} of the log" if doing["log_bytes"] else ""
    return f"; {doing['work']}: {doing['step']}{table}{size}, for {age_text(doing['age_s'])}"


def _subscribers(subscribers: Sequence[Found], columns: int, paint: Colors) -> Iterator[str]:
    """Those that are behind; the others are only counted. The hot tier's own are in the table."""
    subscribers = [each for each in subscribers if not each["subscriber"].startswith(HOT)]
    behind = [each for each in subscribers if each["lag_offsets"]]
    rest = len(subscribers) - len(behind)
    lags = [
        f"{safe(each['subscriber'])} lags by {count_text(each['lag_offsets'])}" for each in behind
    ]
    if rest:
        lags.append(f"{rest} up to date")
    if lags:
        yield paint(
            shortened(f"subscribers {', '.join(lags)}", columns), *(() if behind else (DIM,))
        )


def _trouble(checks: Sequence[Found], columns: int, paint: Colors) -> Iterator[str]:
    """What is wrong, and below it what to do."""
    for check in checks:
        if check["state"] == "ok":
            continue
        said = " ".join((check["why"] or check["state"]).split())
        line = shortened(f"{check['room']} {check['state']}: {safe(said)}", columns)
        yield paint(line, STATE_COLOURS[check["state"]], BOLD)
        if check["next_step"]:
            yield shortened(f"  -> {safe(' '.join(check['next_step'].split()))}", columns)
