"""Statements about connectors in a real node: made, shown, paused, restarted and dropped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import frazil
from frazil.cli import main
from frazil.errors import FrazilError, Malformed
from tests.clients.node import Node
from tests.connectors.installing import install
from tests.connectors.supervised import until
from tests.torture.connectors import run as connectors
from tests.torture.report import Report

NASTY = Path(__file__).with_name("nasty.py")
SETTINGS = '[stages]\nroots = ["{}"]\n[lake]\nenabled = false\n[connectors]\ncount_max = 2\n'


def test_a_short_torture_is_survived() -> None:
    """Every line once and in order, and everything to the sink, although the reader is killed."""
    report: Report = connectors.run(1, 5)
    assert report.is_valid, report.as_json()
    assert report.faults["lines"] > 0


def test_the_life_of_a_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It goes on where it was when it is paused, replaced, restarted; and anew when dropped."""
    files, config = tmp_path / "in", tmp_path / "frazil.toml"
    files.mkdir()
    config.write_text(SETTINGS.format(files))
    site = install(tmp_path / "site", NASTY, {"nasty": "NASTY", "writer": "WRITER"})
    (files / "a.log").write_text("1\n2\n")
    source = f"SOURCE s TYPE files FOLDER='{files}' INTO TOPIC 't'"
    options = ("--config", str(config))
    with Node(tmp_path / "data", *options, environment={"PYTHONPATH": site}) as node:
        client = frazil.connect(node.url)

        def say(text: str) -> list[tuple[object, ...]]:
            return client.execute(text).fetchall()

        def count(role: str = "source") -> int:
            found = client.get("/api/v1/connectors")["connectors"]
            return sum(each["records"] for each in found if each["role"] == role)

        def stored() -> int:
            topics = client.get("/api/v1/status")["log"]["topics"]
            return sum(
                part["durable_watermark"]
                for each in topics
                for part in each["partitions"]
                if each["topic"] == "t"
            )

        for wrong in (
            "SOURCE s TYPE nothing INTO TOPIC 't'",
            "SOURCE s TYPE files FOLDER='/etc' INTO TOPIC 't'",
            f"SOURCE s TYPE files FOLDER='{files}' COLOR=red INTO TOPIC 't'",
            f"SOURCE s TYPE files FOLDER='{files}' INTO TOPIC 'otlp_logs'",
            f"SOURCE s TYPE files FOLDER='{files}' INTO TOPIC '{{any}}'",
            "SINK s TYPE files FROM TOPIC 't'",
            "SINK s TYPE http FROM TOPIC 't'",
        ):
            with pytest.raises(FrazilError):
                say(f"CREATE {wrong}")
        assert say("SHOW SOURCES") == []
        say(f"CREATE {source}")
        until(lambda: stored() == 2)
        say("PAUSE SOURCE s")
        (files / "b.log").write_text("3\n")
        say(f"CREATE OR REPLACE {source}")
        until(lambda: stored() == 3)
        say(f"CREATE SINK copy TYPE writer PATH='{tmp_path / 'out'}' REFUSES='2' FROM TOPIC 't'")
        until(lambda: count("sink") == 3)
        with pytest.raises(FrazilError, match="count_max"):
            say(f"CREATE {source.replace('SOURCE s', 'SOURCE s2')}")
        assert (tmp_path / "out").read_text() == "0 0 1\n0 2 3\n"
        assert main(["connect", "restart", "s", "--url", node.url]) == 0
        assert main(["connect", "pause", "sink/copy", "--url", node.url]) == 0
        capsys.readouterr()
        assert main(["connect", "status", "copy", "--url", node.url, "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert (shown["dead_letters"], shown["lag_offsets"]) == (1, 0)
        assert main(["connect", "--url", node.url]) == 0
        assert "copy" in capsys.readouterr().out
        until(lambda: [row[4] for row in say("SHOW SINKS")] == ["paused"])
        assert stored() == 3
        say("DROP SINK copy")
        subscribers = client.get("/api/v1/status")["subscribers"]
        assert "sink.copy" not in {each["subscriber"] for each in subscribers}
        say("DROP SOURCE s")
        with pytest.raises(Malformed):
            say("RESUME SOURCE s extra")
        say(f"CREATE {source}")
        until(lambda: stored() == 6)  # from the start
