"""`frazil maintain`: what was done, in a small table or as JSON; 1 when something was not."""

from __future__ import annotations

import json

import pytest

from frazil import cli, embedded
from frazil.lake import Maintained

DONE = [
    Maintained(table="logs", files_joined=40, files_made=2, bytes_joined=9_000_000, bytes_made=1),
    Maintained(
        table="spans", snapshots_expired=3, files_removed=7, tags_made=("daily-2026-11-15",)
    ),
]


def maintain(monkeypatch: pytest.MonkeyPatch, done: list[Maintained], *flags: str) -> int:
    monkeypatch.setattr(embedded, "maintain_folder", lambda _: done)
    return cli.main(["maintain", "--data", "somewhere", *flags])


def test_a_table_for_people(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Columns one below the other; nothing done is a dash."""
    assert maintain(monkeypatch, DONE) == 0
    head, logs, spans = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["table", "files", "MB"]
    assert logs.split() == ["logs", "40", "->", "2", "9.0", "->", "0.0", *"-----"]
    assert spans.endswith("daily-2026-11-15")
    assert spans.index("3 expired") == head.index("snapshots")


def test_lines_for_programs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every number, under the names of the class."""
    assert maintain(monkeypatch, DONE, "--json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["table"] for line in lines] == ["logs", "spans"]
    assert lines[1]["tags_made"] == ["daily-2026-11-15"]


def test_what_could_not_be_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Is said, and is a failure."""
    assert maintain(monkeypatch, [Maintained(table="logs", trouble=("no room",))]) == 1
    assert "frazil: logs: no room" in capsys.readouterr().err
