"""A room's `__init__` is its door: it lists the room's files and exports what others may use."""

from __future__ import annotations

import ast
import importlib
import re

import pytest

from tests.house.sources import PACKAGE, Source, report

INNER_DOORS = {
    *("frazil.model.arrow", "frazil.model.protobuf", "frazil.log.produce"),
    "frazil.connectors.runtime",
}
"""Folders with a door of their own: they need Arrow or numba, which the log, and the processes of
connectors, do without."""


def door_findings(source: Source, tenants: list[str]) -> list[str]:
    """What is missing at a door. `tenants` are the room's files (`topic.py`) and folders
    (`sources/`)."""
    tree = source.tree()
    docstring = ast.get_docstring(tree)
    if not docstring:
        return [f"{source.module}: the door has no docstring"]
    findings = [
        f"{source.module}: the docstring does not name {tenant}"
        for tenant in tenants
        if not re.search(rf"(?<![\w/]){re.escape(tenant)}(?!\w)", docstring)
    ]
    exported = exported_names(tree)
    if not is_door(source.module):
        if len(tree.body) > 1:
            findings.append(f"{source.module}: only a room's __init__ exports names")
        return findings
    if exported is None:
        return [*findings, f"{source.module}: the door has no __all__ written as a list of names"]
    if exported != sorted(set(exported), key=export_order):
        order = sorted(set(exported), key=export_order)
        findings.append(f"{source.module}: __all__ is not sorted, or repeats a name; want {order}")
    findings += [
        f"{source.module}: __all__ names {name}, which the door does not have"
        for name in exported
        if name not in bound_names(tree)
    ]
    return findings


def is_door(module: str) -> bool:
    """A room's own package, or one of the few folders inside a room that have a door."""
    return module.count(".") == 1 or module in INNER_DOORS


def exported_names(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
        ):
            try:
                names = ast.literal_eval(node.value)
            except ValueError:
                return None
            return list(names)
    return None


def bound_names(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
    return names


def export_order(name: str) -> tuple[int, list[tuple[int, str]]]:
    """The linter's order: constants, then classes, then the rest; numbers count as numbers."""
    kind = 0 if len(name) > 1 and name.isupper() else 1 if name[0].isupper() else 2
    parts = re.split(r"(\d+)", name)
    return kind, [(int(part), "") if part.isdigit() else (0, part) for part in parts]


GOOD = '''"""room: things.

    one.py   the first
    two/     the second
"""
from frazil.room.one import LIMIT, Thing, make
__all__ = ["LIMIT", "Thing", "make"]
'''


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (GOOD, []),
        ("", ["no docstring"]),
        (GOOD.replace("one.py", "won.py"), ["does not name one.py"]),
        (GOOD.replace("one.py", "none.py"), ["does not name one.py"]),
        (GOOD.replace("two/", "two"), ["does not name two/"]),
        (GOOD.replace("__all__", "names"), ["no __all__"]),
        (GOOD.replace('"Thing", "make"]', '"Thing"] + more'), ["no __all__"]),
        (GOOD.replace('"LIMIT", "Thing"', '"Thing", "LIMIT"'), ["not sorted"]),
        (GOOD.replace('"LIMIT", "Thing"', '"LIMIT", "LIMIT", "Thing"'), ["repeats"]),
        (GOOD.replace("LIMIT, Thing, make", "LIMIT, Thing"), ["names make"]),
    ],
)
def test_the_rule_sees(text: str, wanted: list[str]) -> None:
    """A door that leaves out a file, or exports a missing name, is found."""
    findings = door_findings(Source(module="frazil.room", text=text), ["one.py", "two/"])
    assert len(findings) == len(wanted)
    assert all(want in finding for want, finding in zip(wanted, findings, strict=True))


def rooms() -> list[str]:
    """Every room, and every folder inside one: `lake.append`."""
    doors = [door.parent.relative_to(PACKAGE) for door in PACKAGE.glob("*/**/__init__.py")]
    return sorted(".".join(door.parts) for door in doors)


@pytest.mark.parametrize("room", rooms())
def test_the_door_lists_the_files(room: str) -> None:
    """Every file of a room is in the docstring of its door."""
    folder = PACKAGE.joinpath(*room.split("."))
    tenants = sorted(path.name for path in folder.glob("*.py") if path.name != "__init__.py")
    tenants += sorted(f"{path.parent.name}/" for path in folder.glob("*/__init__.py"))
    door = (folder / "__init__.py").read_text(encoding="utf-8")
    findings = door_findings(Source(module=f"frazil.{room}", text=door), tenants)
    assert not findings, report(findings)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('"""one.py two/"""', 0),
        ('"""one.py"""', 1),
        ('"""one.py two/"""\nfrom frazil.room.one import Thing', 1),
    ],
)
def test_the_rule_sees_code_in_a_folder_without_a_door(text: str, count: int) -> None:
    """A folder inside a room has a docstring that names its files, and nothing else."""
    source = Source(module="frazil.room.folder", text=text)
    assert len(door_findings(source, ["one.py", "two/"])) == count


@pytest.mark.parametrize("room", rooms())
def test_the_door_opens(room: str) -> None:
    """Every exported name is there once the room is imported."""
    door = importlib.import_module(f"frazil.{room}")
    missing = [name for name in getattr(door, "__all__", []) if not hasattr(door, name)]
    assert not missing, f"frazil.{room} exports {missing} but does not have them"
