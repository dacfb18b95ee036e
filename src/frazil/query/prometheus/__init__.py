"""query/prometheus: the tables as series of Prometheus.

names.py   names of metrics and labels, as Prometheus' OTLP receiver makes them
"""
