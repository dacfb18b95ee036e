"""Imports go down, through doors; neighbours on a floor meet in the log."""

from __future__ import annotations

import pytest

from tests.house.sources import Import, Source, house, imports_of, report
from tests.house.test_doors import exported_names, is_door

FLOORS = [
    *({"results", "httpd"}, {"model"}, {"status"}, {"processes"}, {"disk"}, {"settings"}, {"log"}),
    *({"kafka", "ingest", "hot", "tables", "lake", "definitions"}, {"query", "backup", "removal"}),
    *({"load", "languages", "connectors"}, {"rules"}, {"serve"}),
]
"""Think hard about the layering before changing this."""

CELLAR = [{"version"}, {"errors"}, {"metrics"}, {"tracing"}]
"""Loose files everybody may import."""

ROOF = [
    {"config"},
    {"keyed_lake", "log_file_loads"},
    {"embedded"},
    {"folders"},
    {"client"},
    {"appender"},
    {"shutdown"},
    {"self_tracing"},
    {"program_log"},
    {"reader"},
    {"node"},
    {"doctor"},
    {"frazil"},
    {"otlp_client"},
    {"demo", "otlp_files"},
    {"cli"},
    {"__main__"},
]
"""Loose files that wire the rooms together; `frazil` is the door of the library itself."""

LEVELS = [*CELLAR, *FLOORS, *ROOF]
LEVEL_OF = {name: level for level, names in enumerate(LEVELS) for name in names}
ROOMS = frozenset().union(*FLOORS)


def target_of(found: Import, modules: frozenset[str]) -> str | None:
    """The module of ours that an import reaches; None when it is not ours."""
    if found.module.partition(".")[0] != "frazil":
        return None
    inner = f"{found.module}.{found.name}"
    return inner if inner in modules else found.module


def direction_findings(source: Source, modules: frozenset[str]) -> list[str]:
    """Imports that go up, or across to a neighbour."""
    if source.room not in LEVEL_OF:
        return [f"{source.module}: {source.room!r} has no floor; give it one in {__name__}"]
    findings = []
    for found in imports_of(source):
        target = target_of(found, modules)
        if target is None:
            continue
        room = Source(module=target, text="").room
        if room == source.room:
            continue
        if room not in LEVEL_OF:
            findings.append(f"{found.where}: {target} has no floor; give it one in {__name__}")
        elif LEVEL_OF[room] == LEVEL_OF[source.room]:
            findings.append(
                f"{found.where}: {source.room} imports its neighbour {target}; they meet in the log"
            )
        elif LEVEL_OF[room] > LEVEL_OF[source.room]:
            findings.append(
                f"{found.where}: {source.room} imports {target}, which is above it;"
                " move the code down or pass it in"
            )
    return findings


def entrance_findings(source: Source, modules: frozenset[str]) -> list[str]:
    """Imports from inside another room instead of from its door."""
    findings = []
    for found in imports_of(source):
        target = target_of(found, modules)
        if target is None:
            continue
        room = Source(module=target, text="").room
        if room not in ROOMS:
            continue
        door = f"frazil.{room}"
        if room != source.room and not is_door(target):
            findings.append(
                f"{found.where}: imports {target}; import the name from the door {door} instead"
            )
        if room == source.room and target == door:
            findings.append(
                f"{found.where}: imports its own door {door}; import the sibling module instead"
            )
    return findings


MODULES = frozenset(
    {
        "frazil",
        "frazil.errors",
        "frazil.log",
        "frazil.log.segment",
        "frazil.model.arrow",
        "frazil.model.arrow.decode",
        "frazil.node",
    }
)


def snippet(module: str, text: str) -> Source:
    return Source(module=module, text=text)


@pytest.mark.parametrize(
    ("module", "text", "wanted"),
    [
        ("frazil.log.topic", "from frazil.disk import Disk", ""),
        ("frazil.log.topic", "from frazil.errors import Corrupt", ""),
        ("frazil.log.topic", "from frazil import errors", ""),
        ("frazil.log.topic", "import os\nfrom cramjam import snappy", ""),
        ("frazil.node", "from frazil.serve import App\nfrom frazil.config import Config", ""),
        ("frazil.disk.files", "from frazil.log import Topic", "above it"),
        ("frazil.disk.files", "import frazil.log", "above it"),
        ("frazil.disk.files", "from frazil import node", "above it"),
        ("frazil.disk.files", "from frazil import __version__", "above it"),
        ("frazil.disk.files", "def f():\n    from frazil.log import Topic", "above it"),
        ("frazil.errors", "from frazil.metrics import Counter", "above it"),
        ("frazil.kafka.server", "from frazil.hot import Tier", "its neighbour"),
        ("frazil.query.run", "from frazil.kafka import Server\nfrom frazil.lake import scan", ""),
        ("frazil.attic.box", "", "has no floor"),
        ("frazil.log.topic", "from frazil.attic import Box", "has no floor"),
    ],
)
def test_the_direction_rule_sees(module: str, text: str, wanted: str) -> None:
    """An import that goes up or across is found, and one that goes down is not."""
    findings = direction_findings(snippet(module, text), MODULES)
    assert len(findings) == (1 if wanted else 0)
    assert all(wanted in finding for finding in findings)


@pytest.mark.parametrize(
    ("module", "text", "wanted"),
    [
        ("frazil.kafka.server", "from frazil.log import Topic", ""),
        ("frazil.kafka.server", "import frazil.log", ""),
        ("frazil.log.topic", "from frazil.log.segment import LogSegment", ""),
        ("frazil.kafka.server", "from frazil.errors import Corrupt", ""),
        ("frazil.kafka.server", "from frazil.log.segment import LogSegment", "the door frazil.log"),
        ("frazil.kafka.server", "import frazil.log.segment", "the door frazil.log"),
        ("frazil.kafka.server", "from frazil.log import segment", "the door frazil.log"),
        ("frazil.log.topic", "from frazil.log import LogSegment", "sibling"),
        ("frazil.hot.tier", "from frazil.model.arrow import decode_all", ""),
        ("frazil.hot.tier", "from frazil.model.arrow.decode import x", "the door frazil.model"),
    ],
)
def test_the_entrance_rule_sees(module: str, text: str, wanted: str) -> None:
    """An import from inside another room is found, and one through its door is not."""
    findings = entrance_findings(snippet(module, text), MODULES)
    assert len(findings) == (1 if wanted else 0)
    assert all(wanted in finding for finding in findings)


def test_imports_go_down() -> None:
    """A room imports only rooms on lower floors."""
    sources = house()
    modules = frozenset(source.module for source in sources)
    findings = [line for source in sources for line in direction_findings(source, modules)]
    assert not findings, report(findings)


def test_rooms_are_entered_by_their_door() -> None:
    """What another room may use is what the door exports."""
    sources = house()
    # A file may be called like the one thing that is exported of it: that name is the door's.
    given = {
        f"{source.module}.{name}"
        for source in sources
        for name in exported_names(source.tree()) or ()
    }
    modules = frozenset(source.module for source in sources) - given
    findings = [line for source in sources for line in entrance_findings(source, modules)]
    assert not findings, report(findings)
