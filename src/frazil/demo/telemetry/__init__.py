"""demo/telemetry: the spans, logs and metrics they emit.

batches.py        rows until they are a request
instruments.py    the metrics, and all series of them
points.py         histograms, sums, gauges, summaries as data points
request_trace.py  Trip: all that one customer's request leaves behind
"""
