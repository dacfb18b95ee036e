"""A trace of 10,000 spans through the APIs of Tempo and Jaeger, and TraceQL over it.

A real node and one trace. `tempo` is what Grafana's data source asks for: the trace as protobuf.
The peer is the same request for a trace of 50 spans: the cost of machine, connection and engine.
Prints one JSON line last; exits 1 when a bar is missed.

--spans N  another size of the trace
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import urllib.request
from urllib.parse import quote

from bench.log import scratch_folder
from bench.page_trace import Traced
from bench.start import case_of

SPANS = 10_000
PEER_SPANS = 50
ROUNDS = 5
PROTOBUF = "application/protobuf"
JSON = "application/json"
TEMPO_S_MAX = 1.0
JSON_S_MAX = 2.0
QUERY_S_MAX = 1.0
STRUCTURE = "{ status = error } << { resource.service.name = `orders` } | count() > 1"


def answer_s(url: str, accept: str) -> float:
    """Median time of a request, until the last byte."""
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        request = urllib.request.Request(url, headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=60) as response:
            response.read()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--spans", type=int, default=SPANS)
    spans = parser.parse_args().spans
    big, small = "cc" * 16, "dd" * 16
    with scratch_folder() as scratch:
        node = Traced(scratch / "data")
        try:
            node.send(big, spans)
            node.send(small, PEER_SPANS)
            search = f"{node.url}/tempo/api/search?q={quote(STRUCTURE)}&spss=100"
            asked = {
                "tempo, protobuf": (f"{node.url}/tempo/api/v2/traces/%s", PROTOBUF, TEMPO_S_MAX),
                "tempo, json": (f"{node.url}/tempo/api/v2/traces/%s", JSON, JSON_S_MAX),
                "jaeger": (f"{node.url}/jaeger/api/traces/%s", JSON, JSON_S_MAX),
                "jaeger, v3": (f"{node.url}/jaeger/api/v3/traces/%s", JSON, JSON_S_MAX),
            }
            cases = [
                case_of(name, answer_s(url % big, kind), answer_s(url % small, kind), bar, "s")
                for name, (url, kind, bar) in asked.items()
            ]
            cases.append(
                case_of("structural search", answer_s(search, JSON), None, QUERY_S_MAX, "s")
            )
        finally:
            node.stop()
    print(json.dumps({"bench": "trace_doors", "spans": spans, "cases": cases}))
    return 0 if all(case["ok"] for case in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
