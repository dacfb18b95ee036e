"""query/telemetry: logs, traces, services and metrics, by SQL.

logs.py             log records, histogram, facets, neighbors
log_pages.py        page cursors in a long list of log records
log_patterns.py     records that differ only in variable parts, with counts and a trend
traces.py           lists of traces, and one trace as a tree
trace_durations.py  traces by start and duration, for a scatter plot
trace_outline.py    a trace of any size in columns, one span, search in a trace
typed_spans.py      spans with typed values, and as OTLP/JSON
waterfall.py        a trace as rows, self time and critical path
services.py         services, operations, failures, dependencies
operations.py       names of services and operations
deployments.py      new versions of services
compare.py          two versions or time ranges of a service
volume.py           rows sent by each service
metrics.py          metric names, labels, exemplars
metric_series.py    a metric over time
rates.py            increases of counters and histograms by step
counter_resets.py   increases of counters from point to point
histograms.py       quantiles of histograms
heatmaps.py         histograms and latencies over time, as counts in cells
tail.py             Tail: new rows of a table
"""
