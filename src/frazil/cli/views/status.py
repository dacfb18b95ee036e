"""The screen of `frazil status`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from frazil.cli.terminal.colors import BOLD, DIM, GREEN, RED, YELLOW, Colors
from frazil.cli.terminal.table import Row, headings_of, table_lines
from frazil.cli.terminal.text_width import safe, shortened
from frazil.cli.terminal.units import age_text, bytes_text, count_text

BAR_COLUMNS = 20
TIGHT, FULL = 0.8, 0.95
"""Shares of a limit from which a bar is yellow, and red."""
TABLES = {"logs": "logs", "traces": "spans", "metrics": "metrics"}
"""Signal -> its table, which also names its topic."""
STATE_COLORS = {"ok": GREEN, "degraded": YELLOW, "failed": RED}
HOT = "hot_"
KEYED = "tables_"
"""Begin of the names of subscribers that keep the log for keyed tables."""
TABLES_SHOWN = 5
UNWELL = frozenset({"degraded", "failed"})
GROUPS_SHOWN = 3
PIPES_SHOWN = 3
"""Failing ones."""

Json = Mapping[str, Any]


def screen(status: Json, url: str, columns: int, paint: Colors) -> Iterator[str]:
    """Yield the lines of the screen."""
    yield from _title(status, url, columns, paint)
    yield ""
    yield from table_lines(HEADINGS, list(_signals(status)), columns, paint)
    yield from _changed(status["ingest"], columns, paint)
    yield from _sizes(status, columns, paint)
    yield from _lake(status["lake"], columns, paint)
    yield from _pipes(status["pipes"], columns, paint)
    yield from _connectors(status["connectors"], columns, paint)
    yield from _tables(status.get("tables", ()), columns, paint)
    yield from _subscribers(status["subscribers"], columns, paint)
    yield from _groups(status["kafka"], columns, paint)
    yield from _problems(status["checks"], columns, paint)


def _title(status: Json, url: str, columns: int, paint: Colors) -> Iterator[str]:
    ready = paint("ready", GREEN) if status["is_ready"] else paint("not ready", RED, BOLD)
    ingest = status["ingest"]
    since = age_text(status["uptime_s"])
    yield (
        f"{paint('Frazil', BOLD)} {safe(status['version'])}, {safe(status['state'])} "
        f"for {since}, {ready}"
    )
    processes = "  ".join(
        f"{each['process']} {each['pid']} ({bytes_text(each['resident_bytes'])})"
        for each in status["processes"]
    )
    yield paint(shortened(f"processes {processes}", columns), DIM)
    kafka = "" if status["kafka"] is None else f"  Kafka {status['kafka']['port']}"
    ports = (
        f"OTLP/gRPC {ingest['grpc_port']}  OTLP/HTTP {ingest['http_port']}{kafka}  API {safe(url)}"
    )
    yield paint(shortened(ports, columns), DIM)
    yield paint(shortened(f"data {safe(status['data'])}", columns), DIM)


_RATES = ("rows/s", "bytes/s", "requests")
_PROGRESS = ("hot lag", "lake lag", "hot rows", "lake rows", "refused")
HEADINGS = headings_of("signal", numbers=(*_RATES, *_PROGRESS))


def _signals(status: Json) -> Iterator[Row]:
    """Yield one row per signal: rates, lag and counts."""
    rates = {rate["signal"]: rate for rate in status["rates"]}
    topics = {topic["topic"]: topic["partitions"] for topic in status["log"]["topics"]}
    lake = {} if status["lake"] is None else {t["table"]: t for t in status["lake"]["tables"]}
    hot = {} if status["hot"] is None else status["hot"]["rows"]
    for signal in status["ingest"]["signals"]:
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


def _changed(ingest: Json, columns: int, paint: Colors) -> Iterator[str]:
    """Yield what was changed or rejected in accepted requests, if anything was."""
    for name, counts in (
        ("rejected", ingest["rejections"]),
        ("truncated", ingest["truncations"]),
        ("redacted", ingest["redactions"]),
    ):
        if counts:
            text = ", ".join(f"{count_text(n)} by {safe(why)}" for why, n in counts.items())
            yield shortened(f"{name:<11} {text}", columns)
    if ingest["full_services"]:
        names = ", ".join(map(safe, ingest["full_services"]))
        line = f"series      new metric series are rejected of {names}"
        yield paint(shortened(line, columns), YELLOW)


def _lag(parts: Sequence[Json], name: str, size: str | None = None) -> str:
    """Return the lag of a stage; a dash if the stage is off."""
    known = [part[name] for part in parts if part[name] is not None]
    if not known:
        return "-"
    text = count_text(sum(known))
    if size is None or not sum(known):
        return text
    return f"{text}, {bytes_text(sum(part[size] or 0 for part in parts))}"


def _sizes(status: Json, columns: int, paint: Colors) -> Iterator[str]:
    log, hot = status["log"], status["hot"]
    yield _size("log", log["used_bytes"], log["bytes_max"], columns, paint)
    if log["syncing"] is not None:
        acknowledging = _percentiles(status["ingest"]["acknowledging"])
        waiting = count_text(log["queue_batches"])
        syncing = _percentiles(log["syncing"])
        text = f"sync {syncing}; acknowledge {acknowledging}; {waiting} batches queued"
        yield shortened(f"            {text}", columns)
    if hot is None:
        yield paint("hot         off (hot.enabled = false)", DIM)
        return
    yield _size("hot memory", hot["memory_bytes"], hot["memory_bytes_max"], columns, paint)
    yield _size("hot disk", hot["disk_bytes"], hot["disk_bytes_max"], columns, paint)


def _percentiles(latency: Json | None) -> str:
    """Return p50 and p99; a dash if there were no samples."""
    return (
        "-" if latency is None else f"{latency['p50_ms']:.3g} ms (p99 {latency['p99_ms']:.3g} ms)"
    )


def _size(name: str, used: int, limit: int, columns: int, paint: Colors) -> str:
    share = min(1.0, used / limit) if limit else 0.0
    filled = max(round(share * BAR_COLUMNS), 1 if used else 0)
    color = RED if share >= FULL else YELLOW if share >= TIGHT else GREEN
    bar = paint("█" * filled, color) + paint("░" * (BAR_COLUMNS - filled), DIM)
    text = f"{bytes_text(used)} of {bytes_text(limit)}"
    return f"{name:11} {bar} {shortened(text, max(1, columns - BAR_COLUMNS - 13))}"


def _lake(lake: Json | None, columns: int, paint: Colors) -> Iterator[str]:
    if lake is None:
        yield paint("lake        off or not installed", DIM)
        return
    commit = lake["last_commit"]
    has_rows = any(table["snapshot_id"] is not None for table in lake["tables"])
    text = "no recent commit" if has_rows else "no commit yet"
    if commit is not None:
        text = (
            f"last commit {age_text(commit['age_s'])} ago: {safe(commit['table'])}, "
            f"{count_text(commit['added_rows'] or 0)} rows, snapshot {commit['snapshot_id']}"
        )
    yield shortened(f"lake        {text}", columns)
    files = sum(table["files"] for table in lake["tables"])
    small = sum(table["small_files"] for table in lake["tables"])
    size = sum(table["bytes"] for table in lake["tables"])
    limits = f"{age_text(lake['flush_age_ms'] / 1000)} or {bytes_text(lake['flush_bytes'])}"
    yield shortened(
        f"            {count_text(files)} files ({count_text(small)} small), {bytes_text(size)}; "
        f"commit every {limits}",
        columns,
    )
    spark = lake["spark"]
    pid = "" if spark["pid"] is None else f", pid {spark['pid']}"
    yield shortened(f"spark       {safe(spark['state'])}{pid}{_doing(lake['doing'])}", columns)
    for number, rule in enumerate(lake["retention"]):
        head = "retention" if number == 0 else ""
        yield shortened(f"{head:<12}{_retention(rule)}", columns)


def _retention(rule: Json) -> str:
    """Return a rule and what it will remove when."""
    kept = f"{safe(rule_text(rule['table'], rule['where']))}: {kept_text(rule['age_s'])}"
    if rule["next_ms"] is None:
        return f"{kept}; no rows"
    if rule["where"] is None and rule["due_rows"]:
        return f"{kept}; {count_text(rule['due_rows'])} rows have expired"
    return f"{kept}; oldest row expires {day_text(rule['next_ms'])}"


def rule_text(table: str, where: str | None) -> str:
    """Return a retention rule as it is written in the settings."""
    return table if where is None else f"{table} where {where}"


def kept_text(seconds: int) -> str:
    """Return the age of a rule: `30d`, `36h`."""
    hours = seconds // 3600
    return f"{hours // 24}d" if hours % 24 == 0 else f"{hours}h"


def day_text(time_ms: int) -> str:
    """Return a time to the minute, in UTC."""
    try:
        return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError):  # rows may have any time
        return f"{time_ms // 1000} s after 1970"


def _doing(doing: Json | None) -> str:
    """Return the current lake job, if any."""
    if doing is None:
        return ""
    table = "" if doing["table"] is None else f" ({safe(doing['table'])})"
    size = f", {bytes_text(doing['log_bytes'])} of the log" if doing["log_bytes"] else ""
    return f"; {doing['work']}: {doing['step']}{table}{size}, for {age_text(doing['age_s'])}"


def _pipes(pipes: Sequence[Json], columns: int, paint: Colors) -> Iterator[str]:
    """Count the pipes by state, and name those that fail."""
    if not pipes:
        return
    states = Counter(each["state"] for each in pipes)
    text = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    failing = [each for each in pipes if each["is_failing"]]
    waits = [each["next_in_s"] for each in pipes if each["next_in_s"] is not None]
    if waits:
        text += f"; next run in {age_text(min(waits))}"
    yield paint(shortened(f"pipes       {text}", columns), *((YELLOW,) if failing else ()))
    for each in failing[:PIPES_SHOWN]:
        why = " ".join((each["last_error"] or "no message").split())
        line = f"            {safe(each['pipe'])} failed {each['failures']} times: {safe(why)}"
        yield paint(shortened(line, columns), YELLOW)


def _connectors(connectors: Sequence[Json], columns: int, paint: Colors) -> Iterator[str]:
    """Count the connectors by state, and name those that fail."""
    if not connectors:
        return
    states = Counter(each["state"] for each in connectors)
    text = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    failing = [each for each in connectors if each["is_failing"]]
    yield paint(shortened(f"connectors  {text}", columns), *((YELLOW,) if failing else ()))
    for each in failing[:PIPES_SHOWN]:
        why = " ".join((each["why"] or "no message").split())
        line = f"            {each['role']} {safe(each['connector'])}: {safe(why)}"
        yield paint(shortened(line, columns), YELLOW)


def _tables(tables: Sequence[Json], columns: int, paint: Colors) -> Iterator[str]:
    """Describe keyed tables: those with a problem, or behind, come first."""
    if not tables:
        return
    ranked = sorted(tables, key=lambda each: (each["state"] == "ok", -each["lag_offsets"]))
    for table in ranked[:TABLES_SHOWN]:
        text = f"{safe(table['table'])}: {count_text(table['keys'])} rows"
        if table["lag_offsets"]:
            text += f", {count_text(table['lag_offsets'])} changes not applied yet"
        if table["state"] != "ok":
            text += f", {safe(table['state'].replace('_', ' '))}"
        if table["pressure"] != "normal":
            text += f", memory of keys {table['pressure']}"
        line = shortened(f"table       {text}", columns)
        yield paint(line, STATE_COLORS[table["state"]]) if table["state"] in UNWELL else line
    if len(tables) > TABLES_SHOWN:
        yield paint(f"            and {len(tables) - TABLES_SHOWN} more keyed tables", DIM)


def _subscribers(subscribers: Sequence[Json], columns: int, paint: Colors) -> Iterator[str]:
    """List the subscribers that lag; count the others. Those of the hot tier are in the table, and
    those of keyed tables keep what is in no file yet."""
    subscribers = [each for each in subscribers if not each["subscriber"].startswith((HOT, KEYED))]
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


def _groups(kafka: Json | None, columns: int, paint: Colors) -> Iterator[str]:
    """List the consumer groups that lag most; count the others."""
    if kafka is None or not kafka["groups"]:
        return
    behind = [each for each in kafka["groups"] if each["lag_offsets"]]
    lags = [
        f"{safe(each['group'])} lags by {count_text(each['lag_offsets'])} ({each['state'].lower()})"
        for each in behind[:GROUPS_SHOWN]
    ]
    if len(behind) > GROUPS_SHOWN:
        lags.append(f"{len(behind) - GROUPS_SHOWN} more lag")
    rest = kafka["group_count"] - len(behind)
    if rest > 0 and len(behind) < len(kafka["groups"]):
        lags.append(f"{rest} up to date")
    text = shortened(f"groups      {', '.join(lags)}", columns)
    yield paint(text, *(() if behind else (DIM,)))


def _problems(checks: Sequence[Json], columns: int, paint: Colors) -> Iterator[str]:
    """Yield each problem, and below it what to do."""
    for check in checks:
        if check["state"] == "ok":
            continue
        text = " ".join((check["why"] or check["state"]).split())
        line = shortened(f"{check['component']} {check['state']}: {safe(text)}", columns)
        yield paint(line, STATE_COLORS[check["state"]], BOLD)
        if check["next_step"]:
            yield shortened(f"  -> {safe(' '.join(check['next_step'].split()))}", columns)
