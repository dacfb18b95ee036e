"""Requests of services over millions of spans in memory: by a condition on one row, and by a join.

Both must find the same requests. Prints one JSON line last.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time

import numpy as np
import pyarrow as pa

from frazil.model import GiB
from frazil.query.functions.register import SingleQueryContext
from frazil.query.plan.session import open_session, read
from frazil.query.sql.entry_spans import is_entry

SPANS = 5_000_000
TRACE_SPANS = 20
SERVICES = 5
TRACES_PER_BATCH = 10_000
ROUNDS = 3
BEGIN_US = 1_790_000_000_000_000
HOUR_US = 3_600_000_000
KINDS = ("SERVER", "INTERNAL", "CLIENT", "CLIENT")
"""The spans of one service in a trace; the last three are children of each other or the first."""
REMOTE, LOCAL = 0x301, 0x101


def batch_of(
    first: int, count: int, all_traces: int, chance: np.random.Generator
) -> pa.RecordBatch:
    """Traces from `first`: a chain of services with four spans each."""
    rows = count * TRACE_SPANS
    trace, place = np.repeat(np.arange(count), TRACE_SPANS), np.tile(np.arange(TRACE_SPANS), count)
    step, is_root = place % len(KINDS), place == 0
    ids = pa.array([f"{x * 2654435761 % 2**64:032x}" for x in range(first, first + count)])
    begin = first * TRACE_SPANS
    spans = pa.array(
        [f"{x * 11400714819323198485 % 2**64:016x}" for x in range(begin, begin + rows)]
    )
    parent = trace * TRACE_SPANS + np.where(step == len(KINDS) - 1, place - 2, place - 1)
    names = pa.array([f"service-{number}" for number in range(SERVICES)])
    services = pa.array((place // len(KINDS)).astype(np.int32))
    times = BEGIN_US + (first + trace) * (HOUR_US // all_traces) + place * 100
    is_failed = chance.random(rows) < 0.01
    columns = {
        "time": pa.array(times, pa.timestamp("us", tz="UTC")),
        "service_name": pa.DictionaryArray.from_arrays(services, names),
        "trace_id": ids.take(pa.array(trace)),
        "span_id": spans,
        "parent_span_id": spans.take(pa.array(parent, mask=is_root)),
        "kind": pa.array(np.array(KINDS)[step]),
        "status_code": pa.array(np.where(is_failed, "ERROR", "UNSET")),
        "duration_nano": pa.array(chance.lognormal(16, 1, rows).astype(np.int64)),
        "flags": pa.array(np.where((step == 0) & ~is_root, REMOTE, LOCAL).astype(np.int32)),
    }
    return pa.RecordBatch.from_pydict(columns)


def percentiles(function: str) -> str:
    return ", ".join(
        f"{function}({share}) WITHIN GROUP (ORDER BY duration_nano) AS p{share * 100:.0f}"
        for share in (0.5, 0.95, 0.99)
    )


COUNTS = "count(*) AS requests, sum(CASE WHEN status_code = 'ERROR' THEN 1 ELSE 0 END) AS errors"
EXACT = percentiles("percentile_cont")
LATENCY = f"CASE WHEN {is_entry()} THEN duration_nano END"
JOINED = (
    "SELECT child.* FROM spans AS child LEFT JOIN spans AS parent "
    "ON parent.trace_id = child.trace_id AND parent.span_id = child.parent_span_id "
    "WHERE child.kind IN ('SERVER', 'CONSUMER') OR child.parent_span_id IS NULL "
    "OR parent.service_name <> child.service_name"
)
BY_SERVICE = "GROUP BY service_name ORDER BY service_name"
CASES = {
    "all spans, estimated": f"SELECT service_name, {COUNTS}, "
    f"{percentiles('approx_percentile_cont')} FROM spans {BY_SERVICE}",
    "condition, exact": f"SELECT service_name, {COUNTS}, {EXACT} FROM spans "
    f"WHERE {is_entry()} {BY_SERVICE}",
    "condition in one pass, exact": f"SELECT service_name, count(*) AS spans, "
    f"count({LATENCY}) AS requests, {EXACT.replace('duration_nano', LATENCY)} "
    f"FROM spans {BY_SERVICE}",
    "condition, 40 steps, exact": "SELECT date_bin(INTERVAL '90 seconds', time) AS at, "
    f"service_name, {COUNTS}, {EXACT} FROM spans WHERE {is_entry()} GROUP BY 1, 2",
    "join, exact": f"SELECT service_name, {COUNTS}, {EXACT} FROM ({JOINED}) {BY_SERVICE}",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spans", type=int, default=SPANS)
    traces = parser.parse_args().spans // TRACE_SPANS
    chance = np.random.default_rng(1)
    batches = [
        batch_of(first, min(TRACES_PER_BATCH, traces - first), traces, chance)
        for first in range(0, traces, TRACES_PER_BATCH)
    ]
    session = open_session(4 * GiB, SingleQueryContext(BEGIN_US + HOUR_US))
    half = len(batches) // 2
    session.register_record_batches("spans", [batches[:half], batches[half:]])
    answers, took_ms = {}, {}
    for name, sql in CASES.items():
        times = []
        for _ in range(ROUNDS):
            begin = time.perf_counter()
            answers[name] = read(session, sql).to_arrow_table()
            times.append(1000 * (time.perf_counter() - begin))
        took_ms[name] = round(statistics.median(times))
        print(f"{name}: {took_ms[name]} ms")
    condition, joined = (answers[name].to_pylist() for name in ("condition, exact", "join, exact"))
    is_same = condition == joined
    print(json.dumps({"spans": traces * TRACE_SPANS, "is_same": is_same, "took_ms": took_ms}))
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
