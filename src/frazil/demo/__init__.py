"""demo: a sample shop that sends logs, traces and metrics over OTLP.

    customers -> RequestTrace (spans, logs, measurements) -> BatchBuilder -> OtlpClient -> node

    run.py        Demo: sends the past, then live traffic
    traffic.py    Traffic: simulates the shop over time
    incidents.py  the timeline of incidents
    services.py   services and their pods
    shop/         customers, pages, calls between services
    telemetry/    spans, logs and metrics they emit
    protobuf.py   OTLP messages, encoded by hand

It is a plain OTLP client of a node. All three signals come from the same request traces, so they
agree: a histogram counts as many requests as there are spans.
"""

from frazil.demo.run import Demo, DemoPlan, DemoSummary, SignalTotals
from frazil.demo.telemetry.batches import Export
from frazil.demo.traffic import Traffic

__all__ = ["Demo", "DemoPlan", "DemoSummary", "Export", "SignalTotals", "Traffic"]
