"""languages/prometheus: names, series and points as Prometheus has them.

names.json is made by `python -m tests.languages.prometheus.make_names`, which needs Go.
"""
