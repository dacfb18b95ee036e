"""Definitions as files: durable, named when broken, the same after a crash at any moment."""

from __future__ import annotations

import pytest

from frazil.definitions import CreateView, Definitions, parse_statement
from frazil.disk import write_whole
from frazil.errors import Conflict, Unavailable, Unknown
from frazil.model import Rand
from tests.sim.disk import Faults, PowerCut, SimDisk


def view(text: str, *, name: str = "v", replace: bool = False) -> str:
    return f"CREATE {'OR REPLACE ' if replace else ''}VIEW {name} AS {text}"


def test_a_definition_survives() -> None:
    """A new store over the same files has the same texts, without OR REPLACE."""
    disk = SimDisk()
    definitions = Definitions(disk)
    definitions.put(parse_statement(view("SELECT 1", replace=True)))
    definitions.put(parse_statement("CREATE STAGE s URL='file:///data/'"))
    disk = disk.crash(Rand(1))
    again = Definitions(disk)
    assert [(d.kind, d.name, d.text) for d in again.all()] == [
        ("stage", "s", "CREATE STAGE s URL='file:///data/'"),
        ("view", "v", "CREATE VIEW v AS SELECT 1"),
    ]
    assert again.get("view", "v") == CreateView(name="v", query="SELECT 1")
    again.drop("view", "v")
    assert [d.name for d in Definitions(disk.crash(Rand(2))).all()] == ["s"]
    with pytest.raises(Unknown, match="no view v"):
        again.get("view", "v")


def test_names_are_taken() -> None:
    """A second definition needs OR REPLACE; a view and an external table cannot share a name."""
    definitions = Definitions(SimDisk())
    definitions.put(parse_statement(view("SELECT 1")))
    with pytest.raises(Conflict, match="OR REPLACE"):
        definitions.put(parse_statement(view("SELECT 2")))
    external = "CREATE EXTERNAL TABLE v STORED AS PARQUET LOCATION @s"
    with pytest.raises(Conflict, match="the view v"):
        definitions.put(parse_statement(external))
    definitions.put(parse_statement(view("SELECT 2", replace=True)))
    assert [d.text for d in definitions.all()] == ["CREATE VIEW v AS SELECT 2"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"CREATE VIEW w AS SELECT 1", "defines view w"),
        (b"SELECT 1", "not a statement"),
        (b"CREATE VIEW v AS SELECT '", "not closed"),
        (b"\xff\xfe", "decode"),
        (b"SHOW VIEWS", "does not define"),
        (b"", "no statement"),
    ],
)
def test_a_broken_file_is_named_and_not_fatal(text: bytes, why: str) -> None:
    """The error has the path; other definitions work, and the broken one can be dropped."""
    disk = SimDisk()
    Definitions(disk).put(parse_statement(view("SELECT 1", name="good")))
    write_whole(disk, "definitions/view/v.sql", [text])
    definitions = Definitions(disk)
    good, broken = definitions.all("view")
    assert good.error is None
    assert broken.error is not None and why in broken.error
    assert "definitions/view/v.sql" in broken.error
    with pytest.raises(Unavailable, match=r"view/v\.sql"):
        definitions.get("view", "v")
    definitions.drop("view", "v")
    assert [d.name for d in definitions.all()] == ["good"]


def test_a_power_cut_leaves_the_old_or_the_new_text() -> None:
    """Whatever call is the last one: one of both definitions is there, whole."""
    texts = {"CREATE VIEW v AS SELECT 1", "CREATE VIEW v AS SELECT 22"}
    seen = set()
    for crash_at in range(1, 40):
        disk = SimDisk()
        Definitions(disk).put(parse_statement(view("SELECT 1")))
        disk.faults = Faults(crash_at=disk.calls + crash_at)
        is_done = False
        try:
            Definitions(disk).put(parse_statement(view("SELECT 22", replace=True)))
            is_done = True
        except PowerCut:
            pass
        (left,) = Definitions(disk.crash(Rand(crash_at))).all()
        assert left.text in texts
        assert not is_done or left.text == "CREATE VIEW v AS SELECT 22"
        seen.add(left.text)
    assert seen == texts
