"""Tests that pass on Apache Kafka and may fail or be skipped here: by judge and name, with why."""

from __future__ import annotations

EXCEPTIONS: dict[str, dict[str, str]] = {
    "librdkafka": {},
    "franz-go": {},
    "kafka-tools": {},
}
