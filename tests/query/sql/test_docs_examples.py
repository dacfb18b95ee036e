"""The examples of docs/sql.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from frazil.settings import QueryConfig
from tests.query.build import engine_over, log, piece_of

PAGE = (Path(__file__).parents[3] / "docs" / "sql.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("text", QUERIES)
def test_every_query_runs(text: str) -> None:
    """Over tables with and without rows."""
    with engine_over({"logs": [piece_of("logs", [log(1), log(2)])]}) as engine:
        engine.sql(text).arrow()


def test_there_are_queries() -> None:
    assert len(QUERIES) >= 12


@pytest.mark.parametrize("setting", re.findall(r"^\| `query\.(\w+)` \| ([^|]+) \|", PAGE, re.M))
def test_documented_limits_are_the_defaults(setting: tuple[str, str]) -> None:
    name, shown = setting
    number, _, unit = shown.strip().replace(",", "").partition(" ")
    scale = {"": 1, "s": 1000, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}[unit]
    assert getattr(QueryConfig(), name) == int(number) * scale
