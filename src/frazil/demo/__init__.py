"""demo: a small shop that sends logs, traces and metrics over OTLP, as real ones do.

    incidents.py  what goes well and what does not, and when
    protobuf.py   OTLP messages, written by hand
    run.py        Demo: sends the past, then the present; Plan, Summary
    services.py   services, and the pods they run in
    traffic.py    Traffic: the shop as time passes

    shop/         the shop: services, customers, incidents
    telemetry/    the spans, logs and metrics they emit

It is a client of a node's port, and knows nothing else of it. All three signals come from the same
trips, so they agree: a histogram counts as many requests as there are spans.
"""

from frazil.demo.run import Demo, DemoPlan, DemoSummary, SignalTotals
from frazil.demo.telemetry.batches import Export
from frazil.demo.traffic import Traffic

__all__ = ["Demo", "DemoPlan", "DemoSummary", "Export", "SignalTotals", "Traffic"]
