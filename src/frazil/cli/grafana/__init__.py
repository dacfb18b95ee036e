"""cli/grafana: files from which Grafana provisions data sources and dashboards.

data_sources.py  data sources, and the links between them
panels.py        panels and dashboards as Grafana's JSON
red.py           dashboard: requests, errors and durations of services
logs.py          dashboard: logs
node.py          dashboard: a Frazil node
kafka_lake.py    dashboard: the Kafka port and the lake
files.py         all files, and writing them
"""
