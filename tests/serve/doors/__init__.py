"""Doors: other tools' protocols.

test_prometheus.py             what Grafana sends to Prometheus, and other clients
test_loki.py                   what Grafana and logcli send to Loki
trace_clients.py               what clients of Tempo and Jaeger send
test_trace_doors.py            each of it is answered; parameters, errors, formats
test_provisioned_dashboards.py every query of the dashboards that we provide, on demo data
"""
