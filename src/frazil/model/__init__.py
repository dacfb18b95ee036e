"""model: the terms all rooms share. No I/O; imports nothing of Frazil but `errors`.

signal.py    Signal: logs, traces, metrics, and their topic and table
offsets.py   TopicPartition, OffsetRange
promotion.py PromotedColumn: a column with the value of one attribute
severity.py  the severity number of a severity text
json_request.py  JsonRequest: an export request as OTLP/JSON
time.py      Clock (protocol), SystemClock, SteadyTime, Rand, SystemRand
settings.py  descriptions of settings, and the check most of them share
units.py     KiB, MiB, GiB

protobuf/    compiled protobuf reader
arrow/       telemetry as Arrow: schemas, decoder, encoder
"""

from frazil.model.json_request import LEVEL_NAMES, JsonRequest, request_of
from frazil.model.offsets import OffsetRange, TopicPartition
from frazil.model.promotion import (
    NO_PROMOTIONS,
    PromotedColumn,
    PromotedOf,
    PromotedType,
    Promotions,
)
from frazil.model.settings import doc, require_at_least
from frazil.model.severity import NUMBERS_PER_SEVERITY, SEVERITIES
from frazil.model.signal import Signal
from frazil.model.time import NS_PER_MS, Clock, Rand, SteadyTime, SystemClock, SystemRand
from frazil.model.units import GiB, KiB, MiB

__all__ = [
    "LEVEL_NAMES",
    "NO_PROMOTIONS",
    "NS_PER_MS",
    "NUMBERS_PER_SEVERITY",
    "SEVERITIES",
    "Clock",
    "GiB",
    "JsonRequest",
    "KiB",
    "MiB",
    "OffsetRange",
    "PromotedColumn",
    "PromotedOf",
    "PromotedType",
    "Promotions",
    "Rand",
    "Signal",
    "SteadyTime",
    "SystemClock",
    "SystemRand",
    "TopicPartition",
    "doc",
    "request_of",
    "require_at_least",
]
