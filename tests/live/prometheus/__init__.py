"""live/prometheus: our answers beside those of a real Prometheus, fed with the same OTLP.

    python -m tests.live.prometheus.compare     500 range queries on hot tier, seam and lake

    python -m tests.live.prometheus.use_promtool  promtool as a client of a node

Prometheus and promtool are built from their Go module once, which takes minutes.
"""
