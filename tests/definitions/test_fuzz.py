"""A short run of `python -m tests.fuzz --kind statements`."""

from __future__ import annotations

from tests.fuzz import statements as fuzz


def test_both_doors_withstand_any_text() -> None:
    """Nothing changes through the reading door; the other one carries out what it knows."""
    report = fuzz.run(400, 1)
    assert report["disagreements"] == []
    read, executed = report["read"], report["executed"]
    assert isinstance(read, dict) and isinstance(executed, dict)
    assert read["ok"] and read["rejected"] and executed["CreateView"] and executed["Malformed"]
    assert len(executed) > 10, executed
