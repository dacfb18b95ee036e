"""LogQL over an hour of telemetry, beside SQL that counts the same: 10 million log records, sealed.

Both run on the same engine, in turns, and must give the same counts. The bar is on what SQL counts;
queries whose lines go through a pipeline read at most a million of them, and have no bar. Prints
one JSON line last; exits 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.log import scratch_folder
from bench.query import filled as filled_tier
from bench.query import open_engine
from bench.shop import BEGIN_NS, HOUR_NS, SERVICES, Shop
from frazil.languages import (
    LogScalar,
    LogSelection,
    LogSteps,
    evaluate_logql,
    parse_logql,
)
from frazil.query import Engine

ROWS = 10_000_000
ROUNDS = 9
STEP_NS = 60 * 10**9
STEP_US = STEP_NS // 1000
BAR = 1.5
"""Times our own SQL."""

GRID = LogSteps(BEGIN_NS + STEP_NS, BEGIN_NS + HOUR_NS, STEP_NS)
"""Windows of one minute, which are the hour."""
INSTANT = LogSteps(BEGIN_NS + HOUR_NS, BEGIN_NS + HOUR_NS, 0)
# A window holds its end and not its begin; `time_bucket` the other way round.
MINUTE = f"(CAST(time AS BIGINT) - {BEGIN_NS // 1000 + 1}) / {STEP_US}"
WITHIN = (
    f"time > to_timestamp_micros({BEGIN_NS // 1000}) "
    f"AND time <= to_timestamp_micros({(BEGIN_NS + HOUR_NS) // 1000})"
)
BUSY = SERVICES[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogqlCase:
    name: str
    logql: str
    grid: LogSteps = GRID
    sql: str | None = None
    """Has the columns of the labels, and `n`."""


CASES = (
    LogqlCase(
        name="count by service and minute",
        logql='sum by (service_name) (count_over_time({service_name=~".+"}[1m]))',
        sql=f"SELECT service_name, {MINUTE} AS minute, count(*) AS n FROM logs WHERE {WITHIN} "
        "GROUP BY 1, 2",
    ),
    LogqlCase(
        name="count by level and minute",
        logql='sum by (severity_text) (count_over_time({service_name=~".+"}[1m]))',
        sql=f"SELECT severity_text, {MINUTE} AS minute, count(*) AS n FROM logs WHERE {WITHIN} "
        "GROUP BY 1, 2",
    ),
    LogqlCase(
        name="count of the hour",
        logql='sum(count_over_time({service_name=~".+"}[1h]))',
        grid=INSTANT,
        sql=f"SELECT count(*) AS n FROM logs WHERE {WITHIN}",
    ),
    LogqlCase(
        name="lines with a text, by minute",
        logql='sum(count_over_time({service_name=~".+"} |= "timeout" [1m]))',
        sql=f"SELECT {MINUTE} AS minute, count(*) AS n FROM logs "
        f"WHERE {WITHIN} AND contains(body, 'timeout') GROUP BY 1",
    ),
    LogqlCase(
        name="lines that match, by minute",
        logql='sum(count_over_time({service_name=~".+"} |~ "time.?out" [1m]))',
    ),
    LogqlCase(
        name="an attribute, by minute",
        logql=f'topk(5, sum by (http_route) (count_over_time({{service_name="{BUSY}"}}[1m])))',
    ),
    LogqlCase(
        name="a pattern over five minutes of a service",
        logql=f'sum by (first) (count_over_time({{service_name="{BUSY}"}} | pattern "<first> <_>" '
        "[5m]))",
        grid=INSTANT,
    ),
)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def evaluated(engine: Engine, case: LogqlCase) -> float:
    """Run LogQL; the sum of all values."""
    expression = parse_logql(case.logql)
    assert not isinstance(expression, LogSelection)
    value = evaluate_logql(lambda sql: engine.sql(sql), expression, case.grid)
    assert not isinstance(value, LogScalar)
    return float(sum(series.values[series.is_present].sum() for series in value))


def counted(engine: Engine, sql: str) -> float:
    with engine.sql(sql) as result:
        return float(sum(result.arrow()["n"].to_pylist()))


def measure(engine: Engine, case: LogqlCase) -> dict[str, object]:
    ours, others = [], []
    for _ in range(ROUNDS):
        took, total = timed(lambda: evaluated(engine, case))
        ours.append(took)
        if case.sql is not None:
            took, wanted = timed(partial(counted, engine, case.sql))
            others.append(took)
            assert total == wanted, (case.name, total, wanted)
    found: dict[str, object] = {
        "name": case.name,
        "logql_ms": round(statistics.median(ours) * 1000, 1),
        "total": total,
        "ok": True,
    }
    if others:
        ratio = statistics.median(ours) / statistics.median(others)
        found |= {
            "sql_ms": round(statistics.median(others) * 1000, 1),
            "ratio": round(ratio, 2),
            "bar": BAR,
            "ok": ratio <= BAR,
        }
    print(json.dumps(found), file=sys.stderr, flush=True)
    return found


def main(rows: int) -> int:
    with (
        scratch_folder() as folder,
        filled_tier(folder / "data", Shop(logs=rows, spans=rows // 100)) as tier,
        open_engine(tier) as engine,
    ):
        cases = [measure(engine, case) for case in CASES]
    print(json.dumps({"bench": "logql", "cases": cases}))
    return 0 if all(case["ok"] for case in cases) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=ROWS, help="log records")
    sys.exit(main(parser.parse_args().rows))
