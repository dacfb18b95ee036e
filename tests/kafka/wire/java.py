"""Kafka's own Java classes, in a JVM: they write and read every message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError

from tests.kafka.wire.definitions import Definition
from tests.live.kafka.jars import class_path

PACKAGES = {
    "group_records": "org.apache.kafka.coordinator.group.generated",
    "transaction_records": "org.apache.kafka.coordinator.transaction.generated",
}
"""Packages by module; `org.apache.kafka.common.message` has all others."""
QUICK = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m"]
UNKNOWN_TAG = 4_000_000


class JavaMessages:
    """Messages of Kafka's classes. A context: it owns the JVM."""

    def __init__(self) -> None:
        (py4j,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
        self._gateway: Any = JavaGateway.launch_gateway(
            jarpath=str(py4j), classpath=class_path(), javaopts=QUICK, die_on_exit=True
        )
        jvm = self._gateway.jvm
        self._mapper = jvm.com.fasterxml.jackson.databind.ObjectMapper()
        self._protocol = jvm.org.apache.kafka.common.protocol
        self._util = self._protocol.MessageUtil

    def __enter__(self) -> JavaMessages:
        return self

    def __exit__(self, *_: object) -> None:
        self._gateway.shutdown()

    def encode(self, definition: Definition, version: int, tree: dict[str, Any]) -> bytes:
        """Return the bytes of a message that is given as JSON."""
        return self._bytes(self._message(definition, version, tree), version)

    def encode_key(self, definition: Definition, tree: dict[str, Any]) -> bytes:
        """Return the key of a record, its type in front."""
        message = self._message(definition, 0, tree)
        return bytes(self._util.toCoordinatorTypePrefixedBytes(message))

    def encode_versioned(self, definition: Definition, version: int, tree: dict[str, Any]) -> bytes:
        """Return a message with its version in front."""
        message = self._message(definition, version, tree)
        return bytes(self._util.toVersionPrefixedBytes(version, message))

    def encode_with_unknown_tag(
        self, definition: Definition, version: int, tree: dict[str, Any]
    ) -> bytes:
        """Return the bytes of a message with a tagged field of a later version."""
        message = self._message(definition, version, tree)
        tag = self._protocol.types.RawTaggedField(UNKNOWN_TAG, b"\x01\x02\x03")
        message.unknownTaggedFields().add(tag)
        return self._bytes(message, version)

    def read_and_write(self, definition: Definition, version: int, data: bytes) -> bytes | None:
        """Return what Kafka makes of the bytes, or None if it refuses them."""
        buffer = self._gateway.jvm.java.nio.ByteBuffer.wrap(data)
        accessor = self._protocol.ByteBufferAccessor(buffer)
        try:
            message = self._class(definition, "")(accessor, version)
            return self._bytes(message, version)
        except Py4JJavaError:
            return None

    def _bytes(self, message: Any, version: int) -> bytes:
        accessor = self._util.toByteBufferAccessor(message, version)
        return bytes(self._util.byteBufferToArray(accessor.buffer()))

    def _message(self, definition: Definition, version: int, tree: dict[str, Any]) -> Any:
        converter = self._class(definition, "JsonConverter")
        return converter.read(self._mapper.readTree(json.dumps(tree)), version)

    def _class(self, definition: Definition, suffix: str) -> Any:
        package = PACKAGES.get(definition.module, "org.apache.kafka.common.message")
        is_api = definition.json["type"] in ("request", "response", "header")
        found = self._gateway.jvm
        for name in f"{package}.{definition.name}{'Data' if is_api else ''}{suffix}".split("."):
            found = getattr(found, name)
        return found
