"""Inside a room imports go one way, too: no two of its folders, or files, need each other."""

from __future__ import annotations

from collections import defaultdict
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.house.sources import Source, house, imports_of, report
from tests.house.test_floors import target_of

FOLDERS = {
    "frazil.model": ["protobuf", "arrow"],
    "frazil.log": ["format", "dedup", "transactions", "produce", "repair", "external"],
    "frazil.ingest": ["otlp", "http", "grpc"],
    "frazil.kafka": ["wire", "access", "topics", "groups", "transactions", "produce", "fetch"],
    "frazil.hot": ["segment"],
    "frazil.tables": ["keys", "rows"],
    "frazil.lake": [
        *("catalog", "tables", "files", "append", "loaded", "spark", "scan", "keyed", "maintain"),
        *("read", "pyspark"),
    ],
    "frazil.query": [
        *("sql", "functions", "scan", "plan", "counts", "run", "search", "telemetry"),
    ],
    "frazil.languages": ["promql", "prometheus", "logql", "traceql"],
    "frazil.load": ["stages", "formats", "copy", "into_log", "external", "pipes"],
    "frazil.registry": ["stored", "formats"],
    "frazil.connectors": ["files", "postgres", "http", "runtime", "conformance"],
    "frazil.rules": ["template", "files", "state", "store", "notify"],
    "frazil.serve": [
        *("status", "metrics", "saved", "http", "topics", "tables", "api", "mcp", "doors"),
        *("flight", "jaeger_storage"),
    ],
    "frazil.cli": ["terminal", "kafka", "grafana", "views", "shell", "commands"],
    "frazil.doctor": ["checks"],
    "frazil.demo": ["telemetry", "shop"],
}
"""The folders of each room; one may import those before it."""


def child_of(parent: str, module: str) -> str | None:
    """The file or folder directly in `parent` that a module is, or is in."""
    front = f"{parent}."
    return module.removeprefix(front).partition(".")[0] if module.startswith(front) else None


def needs(parent: str, sources: list[Source]) -> dict[str, dict[str, str]]:
    """File or folder -> those it imports, with the place of one such import."""
    modules = frozenset(source.module for source in sources)
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for source in sources:
        above = child_of(parent, source.module)
        if above is None:
            continue
        for each in imports_of(source):
            target = target_of(each, modules)
            below = None if target is None else child_of(parent, target)
            if below not in (None, above):
                found[above][below] = each.where
    return found


def order_findings(parent: str, order: list[str], sources: list[Source]) -> list[str]:
    """Imports between folders that go up, and circles that lead through files as well."""
    found = needs(parent, sources)
    findings = [
        f"{where}: {parent}.{above} imports {below}, which is above it; move the code down"
        for above, targets in found.items()
        for below, where in targets.items()
        if above in order and below in order and order.index(below) > order.index(above)
    ]
    try:
        TopologicalSorter({above: set(targets) for above, targets in found.items()}).prepare()
    except CycleError as error:
        findings.append(f"{parent}: imports go in a circle: {' <- '.join(error.args[1])}")
    return findings


@pytest.mark.parametrize(
    ("imports", "count"),
    [
        ({"low.one": "", "high.two": "frazil.room.low.one"}, 0),
        ({"low.one": "frazil.room.high.two", "high.two": ""}, 1),
        ({"low.one": "frazil.room.loose", "loose": "frazil.room.low.two", "low.two": ""}, 1),
        ({"low.one": "frazil.room.low.two", "low.two": "frazil.room.low.one"}, 0),
    ],
)
def test_the_rule_sees(imports: dict[str, str], count: int) -> None:
    """An import that goes up, or around, is found."""
    sources = [
        Source(module=f"frazil.room.{name}", text=f"import {target}" if target else "")
        for name, target in imports.items()
    ]
    assert len(order_findings("frazil.room", ["low", "high"], sources)) == count


@pytest.mark.parametrize("parent", FOLDERS)
def test_folders_of_a_room_go_one_way(parent: str) -> None:
    """A reader can begin at the lowest folder and never has to look ahead."""
    findings = order_findings(parent, FOLDERS[parent], house())
    assert not findings, report(findings)


def test_every_folder_has_its_place() -> None:
    """A new folder is put into the order."""
    folders = defaultdict(set)
    for source in house():
        parts = source.module.split(".")
        if len(parts) > 3:
            folders[".".join(parts[:2])].add(parts[2])
    assert {room: set(order) for room, order in FOLDERS.items()} == folders
