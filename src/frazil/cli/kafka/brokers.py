"""The brokers that a verb connects to: the Kafka port of the node, or those of `--brokers`."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from frazil.cli.connection import add_where, connected, token_of
from frazil.errors import (
    Conflict,
    FrazilError,
    Malformed,
    Rejected,
    Unauthenticated,
    Unavailable,
    Unknown,
)

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

INSTALL = "this verb needs the Kafka client; install it with: pip install 'frazil[kafka]'"
USER = "frazil"
"""Nodes accept any user name."""
UNREACHABLE = ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_RESOLVE", "_TIMED_OUT_QUEUE")
UNKNOWN = ("UNKNOWN_TOPIC_OR_PART", "GROUP_ID_NOT_FOUND", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION")
LOST_RACE = ("TOPIC_ALREADY_EXISTS", "NON_EMPTY_GROUP", "GROUP_SUBSCRIBED_TO_TOPIC")
HINTS = {
    "TOPIC_AUTHORIZATION_FAILED": "topics of telemetry and internal ones belong to the node; for "
    "others an ACL is needed",
    "_UNKNOWN_PARTITION": "the topic has fewer partitions",
    "INVALID_RECORD": "records of a compacted topic need a key",
}
"""The client does not pass on what a broker says besides the code."""
QUIET = {"log_level": 2}
"""Errors are reported by callback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brokers:
    """Where to connect to, and how."""

    address: str
    settings: dict[str, Any]
    """Settings of librdkafka."""

    def failed(self, error: KafkaError, last: str | None = None) -> FrazilError:
        """Return the error to raise. `last` is what the client has reported before."""
        name, text = error.name(), text_of(error)
        if name in UNREACHABLE:
            reason = text if last is None else last
            return Unavailable(f"Kafka at {self.address} does not respond: {reason}")
        if name in ("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED"):
            return Unauthenticated(f"Kafka at {self.address} rejected the credentials: {text}")
        if name in UNKNOWN:
            return Unknown(text)
        if name in LOST_RACE:
            return Conflict(text)
        return Malformed(text) if name.startswith("INVALID_") else Rejected(f"{name}: {text}")


def text_of(error: KafkaError) -> str:
    """Return what an error means, and a hint if there is one."""
    text, hint = error.str() or error.name(), HINTS.get(error.name())
    return text if hint is None else f"{text} ({hint})"


class LastError:
    """The last error that a client has reported by callback."""

    def __init__(self) -> None:
        self.text: str | None = None
        self.fatal: KafkaError | None = None
        """An error that waiting does not cure."""

    def __call__(self, error: KafkaError) -> None:
        self.text = error.str()
        if error.fatal() or error.name() == "_AUTHENTICATION":
            self.fatal = error


def add_brokers(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name a node or brokers."""
    add_where(parser, has_data=False)
    add_cluster(parser)


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name brokers."""
    add = parser.add_argument
    add("--brokers", metavar="HOST:PORT", help="use this Kafka cluster instead of a node")
    add(
        "-X",
        "--property",
        dest="properties",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set any setting of librdkafka, as in security.protocol=ssl; repeatable",
    )


def brokers_of(options: argparse.Namespace) -> Brokers:
    """Return the brokers that the flags name."""
    _require_client()
    settings: dict[str, Any] = {**QUIET}
    if options.brokers is not None:
        if options.url is not None:
            raise Malformed("--url names a node and --brokers a Kafka cluster; use only one")
        settings["bootstrap.servers"] = options.brokers
        if options.ca_file is not None:
            settings["ssl.ca.location"] = options.ca_file
    else:
        settings.update(_node_settings(options))
    for text in options.properties:
        settings.update([pair_of(text, "--property")])
    return Brokers(address=settings["bootstrap.servers"], settings=settings)


def pair_of(text: str, flag: str) -> tuple[str, str]:
    """Parse `NAME=VALUE`."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise Malformed(f"{flag} {text!r} must be NAME=VALUE")
    return name, value


def _require_client() -> None:
    try:
        import confluent_kafka  # noqa: F401 to see whether it is there
    except ImportError:
        raise Unavailable(INSTALL) from None


def _node_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings for the Kafka port of the node."""
    node = connected(options)
    status = node.get("/api/v1/status")
    if status["kafka"] is None:
        raise Unavailable(
            f"the node at {node.url} has no Kafka port: set kafka.enabled = true and restart it, "
            "or name a Kafka cluster with --brokers"
        )
    host = urlsplit(node.url).hostname or ""
    host = f"[{host}]" if ":" in host else host
    settings = {"bootstrap.servers": f"{host}:{status['kafka']['port']}"}
    is_tls, needs_token = status["ingest"]["is_tls"], status["ingest"]["needs_token"]
    if is_tls and options.ca_file is not None:
        settings["ssl.ca.location"] = options.ca_file
    if needs_token:
        token = token_of(options)
        if token is None:
            raise Unauthenticated(
                "the Kafka port of this node requires a token: use --token-file or $FRAZIL_TOKEN"
            )
        settings.update({"sasl.mechanism": "PLAIN", "sasl.username": USER, "sasl.password": token})
    protocol = ("sasl_" if needs_token else "") + ("ssl" if is_tls else "plaintext")
    return {**settings, "security.protocol": protocol}
