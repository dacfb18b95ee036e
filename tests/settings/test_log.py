"""Settings: contradictions are refused at load."""

from __future__ import annotations

import msgspec
import pytest

from frazil.disk import PAYLOAD_BYTES_MAX
from frazil.errors import Malformed
from frazil.model import MiB
from frazil.settings import LogConfig, TopicConfig
from frazil.settings.log import PARTITIONS_MAX


def test_the_defaults_are_valid() -> None:
    assert msgspec.json.decode(b"{}", type=LogConfig) == LogConfig()
    assert msgspec.json.decode(b"{}", type=TopicConfig) == TopicConfig()


def test_settings_round_trip() -> None:
    """Including absent ones."""
    config = TopicConfig(partitions=3, retention_bytes_max=7, cleanup="compact")
    assert msgspec.json.decode(msgspec.json.encode(config), type=TopicConfig) == config
    assert msgspec.json.decode(msgspec.json.encode(TopicConfig()), type=TopicConfig).partitions == 1


@pytest.mark.parametrize("kind", [LogConfig, TopicConfig])
@pytest.mark.parametrize(
    "text", [b'{"segment_byte_max": 1}', b'{"partitions": "two"}', b'{"when_full": "explode"}']
)
def test_unknown_keys_and_kinds_are_refused(
    kind: type[LogConfig] | type[TopicConfig], text: bytes
) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=kind)


@pytest.mark.parametrize(
    "name",
    [
        "segment_bytes_max",
        "segment_age_ms_max",
        "batch_bytes_max",
        "group_bytes_max",
        "queue_bytes_max",
        "queue_count_max",
        "disk_bytes_max",
        "digest_window_ms",
        "digest_count_max",
        "producer_expiry_ms",
        "index_interval_bytes",
    ],
)
@pytest.mark.parametrize("value", [0, -1])
def test_sizes_and_times_are_positive(name: str, value: int) -> None:
    with pytest.raises(Malformed, match=rf"log\.{name} is {value}; it must be at least 1"):
        LogConfig(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"batch_bytes_max": PAYLOAD_BYTES_MAX // 2 + 1, "queue_bytes_max": PAYLOAD_BYTES_MAX},
            r"log\.batch_bytes_max \(67108865\) is above the maximum of 67108864",
        ),
        (
            {"batch_bytes_max": 2 * MiB, "queue_bytes_max": 1 * MiB},
            r"below log\.queue_bytes_max \(1048576\): a batch of that size could never be queued",
        ),
        (
            {"batch_bytes_max": 1 * MiB - 31, "queue_bytes_max": 1 * MiB},
            r"not below log\.queue_bytes_max",
        ),
        (
            {"segment_bytes_max": 10 * MiB, "disk_bytes_max": 30 * MiB - 1},
            r"below three segments of 10485760 bytes: .* raise it or lower log\.segment_bytes_max",
        ),
    ],
)
def test_contradicting_log_settings_are_refused(settings: dict[str, int], sentence: str) -> None:
    """The message names both and says what to do."""
    with pytest.raises(Malformed, match=sentence):
        LogConfig(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings",
    [
        {"batch_bytes_max": PAYLOAD_BYTES_MAX // 2, "queue_bytes_max": PAYLOAD_BYTES_MAX},
        {"batch_bytes_max": 1 * MiB - 32, "queue_bytes_max": 1 * MiB},
        {"segment_bytes_max": 10 * MiB, "disk_bytes_max": 30 * MiB},
    ],
)
def test_log_settings_at_their_limits_are_valid(settings: dict[str, int]) -> None:
    LogConfig(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"partitions": 0}, "partitions is 0; it must be 1 to 1024"),
        ({"partitions": PARTITIONS_MAX + 1}, "partitions is 1025"),
        ({"compact_dirty_ratio_min": -0.1}, "compact_dirty_ratio_min is -0.1; it must be 0 to 1"),
        ({"compact_dirty_ratio_min": 1.1}, "compact_dirty_ratio_min is 1.1"),
        ({"compact_dirty_ratio_min": float("nan")}, "compact_dirty_ratio_min is nan"),
        ({"retention_ms": -1}, "retention_ms is -1; it must not be negative"),
        ({"retention_bytes_max": -1}, "retention_bytes_max is -1; it must not be negative"),
        ({"compact_age_ms_min": -1}, "compact_age_ms_min is -1"),
        ({"tombstone_grace_ms": -1}, "tombstone_grace_ms is -1"),
        ({"compact_lag_ms_max": -1}, "compact_lag_ms_max"),
        ({"compact_age_ms_min": 2, "compact_lag_ms_max": 1}, "before it is allowed"),
    ],
)
def test_topic_settings_out_of_range_are_refused(
    settings: dict[str, object], sentence: str
) -> None:
    with pytest.raises(Malformed, match=sentence):
        TopicConfig(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings",
    [
        {"partitions": PARTITIONS_MAX},
        {"retention_ms": 0, "retention_bytes_max": 0},
        {"compact_dirty_ratio_min": 0.0, "compact_age_ms_min": 5, "compact_lag_ms_max": 5},
    ],
)
def test_topic_settings_at_their_limits_are_valid(settings: dict[str, object]) -> None:
    TopicConfig(**settings)  # type: ignore[arg-type]
