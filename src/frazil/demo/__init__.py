"""demo: a small shop that sends logs, traces and metrics over OTLP, as real ones do.

    run.py         Demo: sends the past, then the present; Plan, Summary
    traffic.py     Traffic: the shop as time passes
    story.py       what goes well and what does not, and when
    shop.py        services, and the pods they run in
    customers.py   which page somebody asks for
    catalogue.py   products, their search and their stock
    browsing.py    looking around, searching, filling a cart
    buying.py      checkout, payment, shipping
    posting.py     the queue, and the mails that come of it
    calls.py       calls between services: HTTP, gRPC, databases
    trip.py        Trip: all that one customer's request leaves behind
    background.py  starts, ends, timed work, gauges
    measures.py    the metrics, and all series of them
    series.py      histograms, sums, gauges, summaries as data points
    exceptions.py  exceptions and their stacks
    outbox.py      rows until they are a request
    wire.py        protobuf, written by hand

It is a client of a node's port, and knows nothing else of it. All three signals come from the same
trips, so they agree: a histogram counts as many requests as there are spans.
"""

from frazil.demo.outbox import Export
from frazil.demo.run import Demo, Plan, Summary, Tally
from frazil.demo.traffic import Traffic

__all__ = ["Demo", "Export", "Plan", "Summary", "Tally", "Traffic"]
