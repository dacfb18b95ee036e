"""serve/api: the endpoints.

dashboards.py   dashboards of the web page
demo.py         demo data
lake_jobs.py    flush, maintenance, snapshots
lake_tables.py  the tables of the lake, and one of them in every detail
logs.py         questions about logs
metrics.py      questions about metrics
search.py       the search box: its names, and what it says as SQL
services.py     questions about services
sql.py          SQL
status.py       status, health and probes
tail.py         rows as they come
trace.py        one trace: its outline, a span of it, and where something is
traces.py       questions about traces
"""
