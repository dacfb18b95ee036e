"""demo/telemetry: spans, logs and metrics of the shop.

request_trace.py  RequestTrace: spans, logs and measurements of one request
points.py         series of data points: histograms, sums, gauges, summaries
instruments.py    the metrics and all their series
batches.py        BatchBuilder: rows to export requests
"""
