"""A short run of the node's torture; `make torture KIND=node` has many more acts."""

from __future__ import annotations

from tests.torture.node.run import run


def test_node() -> None:
    """A node killed under load keeps every acknowledged record once.

    Read by SQL over both tiers, from the Iceberg tables, and with `frazil.open`.
    """
    report = run(0, 4, acts=(("kill", "nothing"), ("kill_worker", "after")))
    assert report.is_valid, report.as_json()


def test_node_detects_missing_deduplication() -> None:
    """A node without deduplication stores duplicates."""
    report = run(0, 4, acts=(("kill", "nothing"),), more="[ingest]\ndeduplicate = false\n")
    assert report.faults["repeated"] > 0
    assert report.verdict.counts["duplicate"] > 0, report.as_json()
    assert report.verdict.counts["lost"] == 0, report.as_json()
