"""serve/api: the endpoints.

sql.py          SQL
statements.py   statements that define and change things
search.py       search queries as SQL, and field names
logs.py         log records, histogram, facets, pages
traces.py       lists of traces
trace.py        one trace, its spans, search in it
services.py     services, operations, failures, dependencies, deployments, volumes
metrics.py      metrics over time, labels, exemplars
tail.py         live tail
topics.py       topics, their settings and messages
groups.py       consumer groups
tables.py       keyed tables: define and list them
table_rows.py   rows of keyed tables: write, look up, follow
alerts.py       alerts and their rules
dashboards.py   dashboards of the web page
views.py        saved views of the web page
queries.py      saved queries
lake_tables.py  Iceberg tables in detail
connectors.py   sources and sinks
stages.py       files of stages, their first rows, uploads
loads.py        running loads, and how to cancel one
lake_jobs.py    flush, maintenance, snapshots
retention.py    retention rules, erasure
demo.py         demo data
status.py       status, health, probes, metrics
"""
