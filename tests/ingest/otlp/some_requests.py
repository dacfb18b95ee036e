"""Requests for limits and redaction: texts around the limits, every kind of value, every place.

They are drawn from a seed: a strategy of this many choices takes most of a second per request.
"""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList

from frazil.model import Signal
from tests.fuzz.wire import CLASSES

WORDS = ("a", "é", "€", "𝄞", "4111111111111111", "x@y.org", "\n", " ", "secret")
TEXTS = ("", "secret", "x" * 70, "x" * 71, "é" * 36, "y" * 130)
KEYS = ("user.email", "password", "k", "l", "m", "k" * 64, "k" * 65, "é" * 40)
INTEGERS = (0, 7, -5, 4111111111111111, -(2**63), 2**63 - 1)
DROPPED = (0, 1, 127, 2**32 - 1)
POINT_KINDS = ("gauge", "sum", "histogram", "exponential_histogram", "summary")


def requests(signal: Signal) -> st.SearchStrategy[Any]:
    """Requests of one signal, with few of everything."""
    return st.integers(0, 2**32).map(lambda seed: Writer(Random(seed)).request(signal))


class Writer:
    """Draws requests."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._is_long = chance.random() < 0.7

    def request(self, signal: Signal) -> Any:
        request: Any = CLASSES[signal]()
        for _ in self._often():
            resource = getattr(request, request.DESCRIPTOR.fields[0].name).add()
            resource.resource.attributes.extend(self._attributes())
            resource.schema_url = self._text()
            for _ in self._often():
                scope = getattr(resource, resource.DESCRIPTOR.fields[1].name).add()
                scope.scope.name = self._text()
                scope.scope.attributes.extend(self._attributes())
                for _ in self._often():
                    self._add(signal, scope)
        return request

    def _often(self) -> range:
        return range(self._chance.choice((0, 1, 1, 2, 3)))

    def _text(self) -> str:
        chance = self._chance
        if self._is_long and chance.random() < 0.2:
            return chance.choice(TEXTS)
        return "".join(chance.choices(WORDS, k=chance.randint(0, 9 if self._is_long else 2)))

    def _value(self, depth: int = 0) -> AnyValue:
        chance = self._chance
        kind = chance.randrange(8 if depth < 3 else 6)
        count = chance.randint(0, 3)
        if kind == 0:
            return AnyValue()
        if kind == 1:
            return AnyValue(bytes_value=self._text().encode())
        if kind == 2:
            return AnyValue(int_value=chance.choice(INTEGERS))
        if kind == 3:
            return chance.choice((AnyValue(bool_value=True), AnyValue(double_value=1.5)))
        if kind <= 5:
            return AnyValue(string_value=self._text())
        if kind == 6:
            items = [self._value(depth + 1) for _ in range(count)]
            return AnyValue(array_value=ArrayValue(values=items))
        members = [self._pair(depth + 1) for _ in range(count)]
        return AnyValue(kvlist_value=KeyValueList(values=members))

    def _pair(self, depth: int = 0) -> KeyValue:
        key = self._chance.choice(KEYS if self._is_long else KEYS[:5])
        return KeyValue(key=key, value=self._value(depth))

    def _attributes(self) -> list[KeyValue]:
        return [self._pair() for _ in range(self._chance.choice((0, 0, 1, 2, 3, 4)))]

    def _add(self, signal: Signal, scope: Any) -> None:
        chance = self._chance
        rest = {
            "attributes": self._attributes(),
            "dropped_attributes_count": chance.choice(DROPPED),
        }
        if signal is Signal.LOGS:
            record = scope.log_records.add(severity_text=self._text(), **rest)
            if chance.random() < 0.8:
                record.body.CopyFrom(self._value())
        elif signal is Signal.TRACES:
            span = scope.spans.add(name=self._text(), **rest)
            span.events.add(name=self._text(), attributes=self._attributes())
            span.links.add(attributes=self._attributes(), dropped_attributes_count=1)
            span.status.message = self._text()
        else:
            metric = scope.metrics.add(name=self._text(), metadata=self._attributes())
            kind = chance.choice(POINT_KINDS)
            data = getattr(metric, kind)
            data.SetInParent()
            for _ in self._often():
                point = data.data_points.add(attributes=self._attributes())
                if kind != "summary":
                    point.exemplars.add(filtered_attributes=self._attributes())
