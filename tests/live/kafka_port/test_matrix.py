"""The table of clients in the docs is the one that the command writes."""

from __future__ import annotations

from tests.live.kafka_port.judges.exceptions import EXCEPTIONS
from tests.live.kafka_port.judges.outcomes import Comparison, Outcome, Result, report
from tests.live.kafka_port.matrix.table import FAILED, NO, PAGE, YES, parse, with_table

CLIENTS = (
    *("librdkafka", "kafka-python", "aiokafka", "franz-go", "sarama", "Java client and tools 4"),
    *("Java client and tools 3", "Spark", "Kafka Connect", "kcat"),
)


def test_the_table_was_written_by_the_command() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = parse(page)
    assert with_table(page, rows) == page, "run python -m tests.live.kafka_port.matrix"
    cells = {cell for row in rows for cell in row.cells.values()}
    assert cells <= {YES, NO}, f"{FAILED} or written by hand: {cells}"
    for name in CLIENTS:
        assert any(row.client.startswith(name) for row in rows), f"{name} is missing"


def test_a_judge_tells_what_is_worse_here() -> None:
    """Also what was skipped here, or did not run; and exceptions that are no longer needed."""
    passed, failed, skipped = (Result(outcome=each) for each in Outcome)
    compared = [
        Comparison(name="equal", kafka=passed, here=passed),
        Comparison(name="neither", kafka=failed, here=failed),
        Comparison(name="worse", kafka=passed, here=failed),
        Comparison(name="skipped", kafka=passed, here=skipped),
        Comparison(name="named", kafka=passed, here=failed),
        Comparison(name="mended", kafka=passed, here=passed),
    ]
    found = report("judge", compared, {"named": "why", "mended": "why"})
    assert list(found["unexplained"]) == ["worse", "skipped"]
    assert found["exceptions"] == {"named": "why"}
    assert found["exceptions_that_pass"] == ["mended"]
    assert (found["passed_on_kafka"], found["passed_here"]) == (5, 2)
    assert all(reason for names in EXCEPTIONS.values() for reason in names.values())
