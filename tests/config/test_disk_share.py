"""Limits that fit the disk: room for the lake, whatever the size."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.config import Config, disk_use, fit_to_disk, reserve_bytes
from frazil.model import GiB, MiB
from frazil.settings import HotConfig


def test_a_large_disk_changes_nothing() -> None:
    config = Config()
    assert fit_to_disk(config, free_bytes=100 * GiB, used_bytes=0) == config
    assert fit_to_disk(config, free_bytes=7 * GiB, used_bytes=18 * GiB) == config


@given(st.integers(64 * MiB, 30 * GiB), st.booleans())
def test_log_and_hot_tier_leave_room_on_any_disk(total: int, has_hot: bool) -> None:
    """And the settings stay valid: there is room for the topics of OTLP and the largest batch."""
    config = Config(hot=HotConfig(enabled=has_hot))
    fitted = fit_to_disk(config, free_bytes=total, used_bytes=0)
    hot = fitted.hot.disk_bytes_max if has_hot else 0
    assert fitted.log.disk_bytes_max + hot <= 0.76 * total
    assert fitted.lake.flush_bytes <= fitted.log.disk_bytes_max / 4
    assert 2 * reserve_bytes(fitted) <= 0.3 * total
    segment = fitted.log.segment_bytes_max
    assert 4 * segment + max(2 * segment, fitted.log.batch_bytes_max) <= fitted.log.disk_bytes_max
    assert msgspec.json.decode(msgspec.json.encode(fitted), type=Config) == fitted


@pytest.mark.parametrize("is_used", [False, True])
def test_what_is_used_already_counts_as_room(is_used: bool, tmp_path: Path) -> None:
    """So a node that fills its disk starts with the same limits again."""
    if is_used:
        (tmp_path / "log" / "t").mkdir(parents=True)
        (tmp_path / "log" / "t" / "x.log").write_bytes(bytes(3 * MiB))
    used = disk_use(tmp_path)
    assert used == (3 * MiB if is_used else 0)
    fitted = fit_to_disk(Config(), free_bytes=GiB - used, used_bytes=used)
    assert fitted == fit_to_disk(Config(), free_bytes=GiB, used_bytes=0)
