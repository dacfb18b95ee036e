"""Api: an API of the protocol by its key. Its classes are imported when first asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module

from frazil.kafka.wire.api_table import API_TABLE
from frazil.kafka.wire.schema import KafkaMessage, VersionRange

API_VERSIONS = 18
"""The API that clients ask first. Its response has the oldest header in every version, because a
client reads it before it knows what the server speaks."""


@dataclass(frozen=True, slots=True)
class Api:
    """An API: key, name, versions that the codecs know, versions with tagged fields."""

    key: int
    name: str
    module: str
    versions: VersionRange
    flexible: VersionRange

    @property
    def request(self) -> type[KafkaMessage]:
        """The class of its requests."""
        return message_class(self.module, f"{self.name}Request")

    @property
    def response(self) -> type[KafkaMessage]:
        """The class of its responses."""
        return message_class(self.module, f"{self.name}Response")


APIS = {
    key: Api(key, name, module, VersionRange.parse(versions), VersionRange.parse(flexible))
    for key, name, module, versions, flexible in API_TABLE
}
"""All APIs by key. Which versions of them the port offers is the port's to say."""


@cache
def message_class(module: str, name: str) -> type[KafkaMessage]:
    """Import a module of `messages/` and return one of its classes."""
    found: type[KafkaMessage] = getattr(import_module(f"frazil.kafka.wire.messages.{module}"), name)
    return found
