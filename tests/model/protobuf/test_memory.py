"""Compiled functions are compiled again when a source they may come from has changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from frazil.model.arrow.decoder.values import value_types
from frazil.model.protobuf import memory
from frazil.query.functions import json_scan


def test_the_cache_key_covers_the_sources(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("A = 1")
    before = memory._sources_hash(tmp_path)
    (tmp_path / "two.py").write_text("B = 1")
    memory._sources_hash.cache_clear()
    assert memory._sources_hash(tmp_path) != before


def test_a_function_depends_on_all_of_model_and_on_its_own_folder() -> None:
    functions: list[Any] = [value_types.build_present, json_scan.find_all]
    model = memory._sources_hash(memory.MODEL)
    own = memory._sources_hash(Path(json_scan.__file__).parent)
    assert [function._cache._sources for function in functions] == [(model,), (model, own)]
