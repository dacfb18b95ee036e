"""serve/doors/prometheus: Prometheus' HTTP API, below /prometheus.

door.py      the paths
params.py    parameters: times, durations, limits, selectors
answers.py   answers and errors in Prometheus' form
reading.py   a request that reads, within limits, until its client leaves
queries.py   PromQL: values, exemplars, formatting
listing.py   labels, values, series, metadata
status.py    what the server is, its rules and alerts
"""
