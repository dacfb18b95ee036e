"""`frazil maintain`: its table, its JSON, its exit code."""

from __future__ import annotations

import json

import pytest

from frazil import cli, folders
from frazil.lake import Maintained

DONE = [
    Maintained(table="logs", files_joined=40, files_made=2, bytes_joined=9_000_000, bytes_made=1),
    Maintained(
        table="spans", snapshots_expired=3, files_removed=7, tags_made=("daily-2026-11-15",)
    ),
]


def maintain(monkeypatch: pytest.MonkeyPatch, done: list[Maintained], *flags: str) -> int:
    monkeypatch.setattr(folders, "maintain_folder", lambda _: done)
    return cli.main(["maintain", "--data", "somewhere", *flags])


def test_the_table_is_aligned(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Columns without work have a dash."""
    assert maintain(monkeypatch, DONE) == 0
    head, logs, spans = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["table", "files", "MB"]
    assert logs.split() == ["logs", "40", "->", "2", "9.0", "->", "0.0", *"-----"]
    assert spans.endswith("daily-2026-11-15")
    assert spans.index("3 expired") == head.index("snapshots")


def test_json_has_one_object_per_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert maintain(monkeypatch, DONE, "--json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["table"] for line in lines] == ["logs", "spans"]
    assert lines[1]["tags_made"] == ["daily-2026-11-15"]


def test_a_failed_step_is_printed_and_exits_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert maintain(monkeypatch, [Maintained(table="logs", trouble=("no room",))]) == 1
    assert "frazil: logs: no room" in capsys.readouterr().err
