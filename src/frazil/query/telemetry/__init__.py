"""query/telemetry: logs, traces, services and metrics, by SQL.

counter_resets.py   how much counters grew from point to point
histograms.py       quantiles of histograms
log_pages.py        places in a long list of logs
logs.py             logs over time, and their facets
metric_series.py    a metric over time
metrics.py          which metrics there are, their labels and exemplars
rates.py            what counters and histograms counted in each step
services.py         how services do, and who calls whom
tail.py             rows as they come
trace_durations.py  traces by when they began and how long they took
trace_outline.py    a trace of any size as columns, one span of it, and finding in it
traces.py           which traces there were, and one as a tree
volume.py           how much each service sends
waterfall.py        a trace line by line, and where its time went
"""
