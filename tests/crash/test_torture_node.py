"""A short version of the whole node's torture; `make torture KIND=node` has many more acts."""

from __future__ import annotations

from tests.torture.node.run import run


def test_node() -> None:
    """Killed, harmed and stopped amid traffic of all signals: every acknowledged record is there
    once, by SQL over both tiers, in the Iceberg tables, and for whoever opens the folder."""
    report = run(0, 4, acts=(("kill", "nothing"), ("kill_worker", "after")))
    assert report.is_valid, report.as_json()
