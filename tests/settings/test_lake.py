"""LakeConfig rejects invalid settings."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from frazil.errors import Malformed
from frazil.settings import LakeConfig


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"catalog_name": "my lake"}, "lake.catalog_name is 'my lake'"),
        ({"namespace": ""}, "lake.namespace is ''"),
        ({"namespace": "a.b"}, "lake.namespace"),
        ({"driver_memory_bytes": 1024}, "lake.driver_memory_bytes is 1024"),
        ({"worker_memory_bytes": 1024}, "lake.worker_memory_bytes is 1024"),
        ({"spark": {"spark.master": "local[4]"}}, "set lake.master instead"),
        ({"spark": {"spark.driver.memory": "4g"}}, "set lake.driver_memory_bytes instead"),
        ({"spark": {"spark.jars.packages": "a:b:1"}}, "makes every start wait for the network"),
        ({"spark": {"sql.shuffle.partitions": "8"}}, "begin with 'spark.'"),
    ],
)
def test_invalid_settings_are_errors(settings: dict[str, Any], wanted: str) -> None:
    """The message has the setting, its value, and what to do."""
    with pytest.raises(Malformed, match=wanted):
        LakeConfig(**settings)


def test_unknown_keys_are_errors() -> None:
    with pytest.raises(msgspec.ValidationError, match="ware_house"):
        msgspec.convert({"ware_house": "/tables"}, LakeConfig)


@pytest.mark.parametrize(
    ("master", "is_local"),
    [
        ("local", True),
        ("local[2]", True),
        ("local[*]", True),
        ("local-cluster[2,1,1024]", False),
        ("spark://host:7077", False),
        ("k8s://https://host:443", False),
    ],
)
def test_is_local_depends_on_the_master(master: str, is_local: bool) -> None:
    assert LakeConfig(master=master).is_local == is_local
