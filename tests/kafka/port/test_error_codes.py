"""Error codes are Kafka's: librdkafka has the same names and numbers."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from frazil.errors import SequenceOld
from frazil.kafka.error_codes import ErrorCode, error_code

SHORT = {
    "UNKNOWN_SERVER_ERROR": "UNKNOWN",
    "NONE": "NO_ERROR",
    "CORRUPT_MESSAGE": "INVALID_MSG",
    "UNKNOWN_TOPIC_OR_PARTITION": "UNKNOWN_TOPIC_OR_PART",
    "NOT_LEADER_OR_FOLLOWER": "NOT_LEADER_FOR_PARTITION",
    "MESSAGE_TOO_LARGE": "MSG_SIZE_TOO_LARGE",
    "INVALID_TOPIC_EXCEPTION": "TOPIC_EXCEPTION",
}
"""Names that librdkafka has changed."""


@pytest.mark.parametrize("code", ErrorCode)
def test_names_and_numbers(code: ErrorCode) -> None:
    name = KafkaError(int(code)).name()
    if name.startswith("ERR_"):
        pytest.skip("this librdkafka does not know it")
    assert name == SHORT.get(code.name, code.name)


def test_an_old_sequence_is_no_success() -> None:
    """Clients take DUPLICATE_SEQUENCE_NUMBER for an acknowledgement."""
    assert error_code(SequenceOld("")) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
