"""One word, one meaning: no two public classes share a name, sizes are defined once, modules stay
small enough to read."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.house.sources import house, report

LINES_MAX = 500


def test_no_two_public_classes_share_a_name() -> None:
    """A reader who has met a class once knows it everywhere."""
    places = defaultdict(list)
    for source in house():
        for node in source.tree().body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(source.module)
    findings = [f"{name}: {', '.join(where)}" for name, where in places.items() if len(where) > 1]
    assert not findings, report(findings)


def test_sizes_are_defined_once() -> None:
    """`MiB` comes from `frazil.model`."""
    findings = [
        source.at(node)
        for source in house()
        if source.module != "frazil.model.units"
        for node in ast.walk(source.tree())
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        if node.id in ("KiB", "MiB", "GiB", "KIB", "MIB", "GIB")
    ]
    assert not findings, report(findings)


def test_modules_are_short() -> None:
    """A module of more than 500 lines is two modules."""
    findings = [
        f"{source.module}: {source.text.count(chr(10))} lines"
        for source in house()
        if source.text.count("\n") > LINES_MAX
    ]
    assert not findings, report(findings)
