"""serve/metrics: the `/metrics` page for Prometheus.

exposition.py  the page as text, in both formats
families.py    our metrics under their Prometheus names
gauges.py      gauges computed at scrape time
process.py     memory, CPU and open files of this process
"""
