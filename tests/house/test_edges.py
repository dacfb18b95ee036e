"""Only edges await: the core is synchronous and has one owner."""

from __future__ import annotations

import ast

import pytest

from tests.house.sources import Source, house, report

EDGES = {"httpd", "kafka", "ingest", "serve", "reader", "node"}


def async_findings(source: Source) -> list[str]:
    """Coroutines away from the edges."""
    if source.room in EDGES:
        return []
    return [
        f"{source.at(node)}: async def {node.name} in {source.room};"
        f" only {', '.join(sorted(EDGES))} may await"
        for node in ast.walk(source.tree())
        if isinstance(node, ast.AsyncFunctionDef)
    ]


@pytest.mark.parametrize(
    ("module", "text", "count"),
    [
        ("frazil.kafka.server", "async def serve(): ...", 0),
        ("frazil.node", "async def run(): ...", 0),
        ("frazil.log.writer", "def step(): ...", 0),
        ("frazil.log.writer", "async def step(): ...", 1),
        ("frazil.disk.files", "class A:\n    async def read(self): ...", 1),
    ],
)
def test_the_rule_sees(module: str, text: str, count: int) -> None:
    """A coroutine in the core is found, and one at an edge is not."""
    assert len(async_findings(Source(module=module, text=text))) == count


def test_only_edges_await() -> None:
    """No room below the edges can be suspended in the middle of a change."""
    findings = [line for source in house() for line in async_findings(source)]
    assert not findings, report(findings)
