"""serve/metrics: the `/metrics` page for Prometheus.

exposition.py  the page as text, in both formats
gauges.py      gauges computed at scrape time
"""
