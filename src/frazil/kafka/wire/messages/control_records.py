"""the value of a record that ends a transaction. Generated from the definitions of Apache Kafka
4.2.1 by `python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the
Apache License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Versions


class EndTxnMarker(KafkaMessage):
    """Message in versions 0."""

    VERSIONS = Versions("EndTxnMarker", "0")

    coordinator_epoch: Annotated[int, Field("int32", "0+")] = 0
    """The coordinator epoch when appending the record"""
