"""Rules beside Prometheus' own: promtool, and a real Alertmanager. Both need Go.

python -m tests.live.rules.compare          promtool test files, judged by both
python -m tests.live.rules.alertmanager     alerts arrive at an Alertmanager, and are resolved
"""
