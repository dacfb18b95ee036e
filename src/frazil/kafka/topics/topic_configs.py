"""Kafka's names of the settings of a topic, and what they are here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from frazil.errors import Malformed
from frazil.model import Signal
from frazil.settings import KafkaPortConfig, LogConfig, TopicConfig

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
FOREVER = -1
"""Kafka's value for no limit."""

BOOLEAN, STRING, INT, LONG, DOUBLE, LIST = 1, 2, 3, 5, 6, 7
"""Kafka's types of settings."""

POLICIES = {"expire": "delete", "compact": "compact", "compact_expire": "compact,delete"}
"""Our names of what happens to old records, and Kafka's."""
CLEANUP = {frozenset(theirs.split(",")): ours for ours, theirs in POLICIES.items()}
COMPRESSIONS = {
    **{each: each for each in ("producer", "gzip", "snappy", "lz4", "zstd")},
    "none": "uncompressed",
}
TIMESTAMPS = {"create": "CreateTime", "append": "LogAppendTime"}

OTLP = "frazil.otlp"
"""Declares a new topic as OTLP; the value is a signal."""

WITHOUT_EFFECT = frozenset(
    {
        "file.delete.delay.ms",
        "flush.messages",
        "flush.ms",
        "index.interval.bytes",
        "preallocate",
        "segment.bytes",
        "segment.index.bytes",
        "segment.jitter.ms",
        "segment.ms",
        "unclean.leader.election.enable",
    }
)
"""Settings that a client may set and that change nothing: every batch is synced before it is
acknowledged, and segments belong to the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """One setting of a topic, as Kafka's tools show it."""

    name: str
    value: str
    kind: int
    is_default: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Own:
    """A setting that our topics have as well."""

    field: str
    kind: int
    parse: Callable[[str], Any]
    text: Callable[[Any], str]


def _whole(text: str) -> int:
    number = int(text)
    if not 0 <= number <= INT64_MAX:
        raise ValueError
    return number


def _size(text: str) -> int:
    number = int(text)
    if not 1 <= number <= INT32_MAX:
        raise ValueError
    return number


def _limit(text: str) -> int | None:
    return None if int(text) == FOREVER else _whole(text)


def _limit_text(value: int | None) -> str:
    return str(FOREVER if value is None else value)


def _age(text: str) -> int:
    return INT64_MAX if int(text) == FOREVER else _whole(text)


def _age_text(value: int) -> str:
    return str(FOREVER if value == INT64_MAX else value)


def _lag(text: str) -> int | None:
    number = _whole(text)
    return None if number == INT64_MAX else number


def _lag_text(value: int | None) -> str:
    return str(INT64_MAX if value is None else value)


def _cleanup(text: str) -> str:
    policies = frozenset(each.strip() for each in text.split(","))
    if policies not in CLEANUP:
        raise ValueError
    return CLEANUP[policies]


def _named(names: Mapping[str, str], field: str) -> _Own:
    """Return a setting whose values have other names here. `names` are theirs, by ours."""
    ours = {theirs: each for each, theirs in names.items()}

    def parse(text: str) -> str:
        if text not in ours:
            raise ValueError
        return ours[text]

    return _Own(field=field, kind=STRING, parse=parse, text=names.__getitem__)


OWN = {
    "cleanup.policy": _Own(field="cleanup", kind=LIST, parse=_cleanup, text=POLICIES.__getitem__),
    "compression.type": _named(COMPRESSIONS, "compression"),
    "delete.retention.ms": _Own(field="tombstone_grace_ms", kind=LONG, parse=_whole, text=str),
    "max.compaction.lag.ms": _Own(
        field="compact_lag_ms_max", kind=LONG, parse=_lag, text=_lag_text
    ),
    "max.message.bytes": _Own(field="batch_bytes_max", kind=INT, parse=_size, text=str),
    "message.timestamp.type": _named(TIMESTAMPS, "timestamps"),
    "min.cleanable.dirty.ratio": _Own(
        field="compact_dirty_ratio_min", kind=DOUBLE, parse=float, text=str
    ),
    "min.compaction.lag.ms": _Own(field="compact_age_ms_min", kind=LONG, parse=_whole, text=str),
    "retention.bytes": _Own(field="retention_bytes_max", kind=LONG, parse=_limit, text=_limit_text),
    "retention.ms": _Own(field="retention_ms", kind=LONG, parse=_age, text=_age_text),
}


def default_config(port: KafkaPortConfig, partitions: int | None = None) -> TopicConfig:
    """Return the settings of a topic for which a client sets none."""
    return TopicConfig(
        partitions=port.partitions if partitions is None else partitions,
        retention_ms=_age(str(port.retention_ms)),
        may_expire_early=False,  # consumers rely on the retention
    )


def with_configs(
    config: TopicConfig, configs: Mapping[str, str | None], log: LogConfig
) -> TopicConfig:
    """Return the settings with those of a client. Raises `Malformed` if one cannot be met."""
    fixed = dict(_fixed(log))
    values = {name: getattr(config, name) for name in config.__struct_fields__}
    for name, value in configs.items():
        if value is None or name in WITHOUT_EFFECT:
            continue
        own = OWN.get(name)
        if own is not None:
            try:
                values[own.field] = own.parse(value)
            except ValueError:
                raise Malformed(f"{name} cannot be {value!r}") from None
            if name == "max.message.bytes" and values[own.field] > log.batch_bytes_max:
                raise Malformed(
                    f"{name} cannot be {value!r}: log.batch_bytes_max is {log.batch_bytes_max}"
                )
        elif name not in fixed:
            raise Malformed(f"there is no setting {name} for topics")
        elif value != fixed[name][0]:
            raise Malformed(f"{name} cannot be {value!r}; it is always {fixed[name][0]!r}")
    return TopicConfig(**values)


def split_otlp(
    configs: Mapping[str, str | None],
) -> tuple[Signal | None, Mapping[str, str | None]]:
    """Return the signal of a topic that a client declares as OTLP, and its other settings. Raises
    `Malformed` if there is no such signal, or if one of the others is that of all telemetry."""
    value = configs.get(OTLP)
    others = {name: each for name, each in configs.items() if name != OTLP}
    if value is None:
        return None, others
    if value not in set(Signal):
        raise Malformed(f"{OTLP} cannot be {value!r}; it is one of {', '.join(Signal)}")
    for name, each in others.items():
        if name in OWN and each is not None:
            raise Malformed(
                f"{name} cannot be set with {OTLP}: telemetry is kept as [retention] says"
            )
    return Signal(value), others


def is_topic_config(name: str, log: LogConfig) -> bool:
    """Return whether topics have a setting of this name."""
    return name in OWN or name in WITHOUT_EFFECT or name in dict(_fixed(log))


def config_entries(
    config: TopicConfig, port: KafkaPortConfig, log: LogConfig, signal: Signal | None = None
) -> Iterator[ConfigEntry]:
    """Yield every setting of a topic, by name. Records of telemetry get the time of the node."""
    default = default_config(port)
    entries = {
        name: ConfigEntry(
            name=name,
            value=own.text(_effective(config, own.field, log)),
            kind=own.kind,
            is_default=getattr(config, own.field) == getattr(default, own.field),
        )
        for name, own in OWN.items()
    }
    for name, (value, kind) in _fixed(log):
        entries[name] = ConfigEntry(name=name, value=value, kind=kind, is_default=True)
    if signal is not None:
        time_type = entries["message.timestamp.type"]
        entries[time_type.name] = replace(time_type, value="LogAppendTime")
        entries[OTLP] = ConfigEntry(name=OTLP, value=signal.value, kind=STRING, is_default=False)
    for name in sorted(entries):
        yield entries[name]


def _effective(config: TopicConfig, field: str, log: LogConfig) -> Any:
    """Return a setting of a topic; the log's own, if the topic has none."""
    value = getattr(config, field)
    return log.batch_bytes_max if field == "batch_bytes_max" and value is None else value


def _fixed(log: LogConfig) -> Iterator[tuple[str, tuple[str, int]]]:
    """Yield the settings that are the same for all topics."""
    yield "flush.messages", ("1", LONG)
    yield "flush.ms", ("0", LONG)
    yield "min.insync.replicas", ("1", INT)
    yield "remote.storage.enable", ("false", BOOLEAN)
    yield "segment.bytes", (str(log.segment_bytes_max), INT)
    yield "segment.ms", (str(log.segment_age_ms_max), LONG)
    yield "unclean.leader.election.enable", ("false", BOOLEAN)


def broker_entries(port: KafkaPortConfig, log: LogConfig) -> Iterator[ConfigEntry]:
    """Yield the settings of the broker that clients look for."""
    values = (
        ("auto.create.topics.enable", str(port.auto_create_topics).lower(), BOOLEAN),
        ("compression.type", "producer", STRING),
        ("default.replication.factor", "1", INT),
        ("log.retention.ms", str(port.retention_ms), LONG),
        ("message.max.bytes", str(log.batch_bytes_max), INT),
        ("min.insync.replicas", "1", INT),
        ("num.partitions", str(port.partitions), INT),
        ("socket.request.max.bytes", str(port.request_bytes_max), INT),
    )
    for name, value, kind in values:
        yield ConfigEntry(name=name, value=value, kind=kind, is_default=False)
