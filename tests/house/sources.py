"""What a rule reads: one module of the house as text and as a syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "frazil"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One module: its dotted name and its text."""

    module: str
    text: str

    @property
    def room(self) -> str:
        """`log` for everything in that folder, `errors` for that loose file, `frazil` for the
        door of the library."""
        parts = self.module.split(".")
        return parts[1] if len(parts) > 1 else parts[0]

    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    def at(self, node: ast.stmt | ast.expr | ast.ExceptHandler) -> str:
        """Where a finding is, for its message."""
        return f"{self.module}, line {node.lineno}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One imported thing: `from frazil.log import Topic` is module `frazil.log`, name `Topic`."""

    module: str
    name: str | None
    where: str


def house() -> list[Source]:
    """Every module of the package."""
    return [
        Source(module=_module_of(path), text=path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    ]


def _module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(source: Source) -> Iterator[Import]:
    """Every import, also those inside functions and type-checking blocks. Relative ones are left
    to the linter, which refuses them."""
    for node in ast.walk(source.tree()):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module=alias.name, name=None, where=source.at(node))
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            assert node.module is not None
            for alias in node.names:
                yield Import(module=node.module, name=alias.name, where=source.at(node))


def references_of(source: Source) -> Iterator[tuple[str, str]]:
    """Every dotted name that is used, with imports resolved, and where: `sleep` after
    `from time import sleep` is `time.sleep`. A name taken without a call counts as well."""
    tree = source.tree()
    full_names = _imported_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            dotted = _dotted(node)
            if dotted is not None:
                head, _, rest = dotted.partition(".")
                full = full_names.get(head, head)
                yield (f"{full}.{rest}" if rest else full), source.at(node)


def _imported_names(tree: ast.Module) -> dict[str, str]:
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                # `import os.path` binds `os`; `import os.path as p` binds the whole.
                names[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        front = _dotted(node.value)
        return None if front is None else f"{front}.{node.attr}"
    return None


def report(findings: list[str]) -> str:
    """The findings as the message of a failed assertion."""
    return "\n  ".join(["the house is out of order:", *findings])
