"""KafkaConfig rejects settings that are contradictory or would break exactly-once."""

from __future__ import annotations

from pathlib import Path

import pytest

from frazil.appender import run
from frazil.config import load
from frazil.errors import Malformed
from frazil.model import SystemClock, SystemRand
from frazil.settings import KafkaConfig
from frazil.settings.kafka import OWN_SETTINGS


def test_topics_default_to_those_of_the_collector() -> None:
    config = KafkaConfig(brokers="b:1", topics={"spans": "traces"})
    assert [config.topic_of(table) for table in ("logs", "spans", "metrics")] == [
        "otlp_logs",
        "traces",
        "otlp_metrics",
    ]


@pytest.mark.parametrize("name", OWN_SETTINGS)
def test_settings_that_exactly_once_needs_cannot_be_set(name: str) -> None:
    """The error has the reason."""
    with pytest.raises(Malformed, match=rf"lake\.kafka\.client contains {name}; .{{20}}"):
        KafkaConfig(brokers="b:1", client={name: "x"})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('brokers = " "', "brokers is empty"),
        ('group = ""\nbrokers = "b:1"', "group is empty"),
        ('brokers = "b:1"\ntopics = {nothing = "t"}', "the tables are logs, spans, metrics"),
        ('brokers = "b:1"\ntopics = {logs = "otlp_spans"}', "two tables the same topic"),
        (
            'brokers = "b:1"\nbroker = "c:1"',
            "toml: lake.kafka.broker is not a setting; did you mean lake.kafka.brokers",
        ),
        ("skip_lost = true", "lake.kafka is set, but lake.kafka.brokers is missing"),
    ],
)
def test_invalid_settings_are_errors(tmp_path: Path, text: str, wanted: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(f"[lake.kafka]\n{text}\n", encoding="utf-8")
    with pytest.raises(Malformed, match=wanted):
        load(str(file), {})


def test_an_appender_without_kafka_is_an_error(tmp_path: Path) -> None:
    """It creates no folder."""
    config = load(None, {"data": str(tmp_path / "data")})
    with pytest.raises(Malformed, match="set --kafka"):
        run(config, is_once=True, on_commit=print, clock=SystemClock(), rand=SystemRand())
    assert not (tmp_path / "data").exists()


def test_keyed_tables_are_refused_in_the_folder_of_a_node(tmp_path: Path) -> None:
    """It may have tables of the same names."""
    (tmp_path / "log").mkdir()
    config = load(
        None,
        {"data": str(tmp_path), "lake": {"kafka": {"brokers": "b:1", "tables": str(tmp_path)}}},
    )
    with pytest.raises(Malformed, match="is the data folder of a node"):
        run(config, is_once=True, on_commit=print, clock=SystemClock(), rand=SystemRand())
