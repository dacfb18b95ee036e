"""Which door of a node a text goes to: that of queries, or that of statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from frazil.cli.terminal.load_progress import load_progress
from frazil.definitions import is_statement
from frazil.errors import Malformed
from frazil.results import Limits, Result

if TYPE_CHECKING:
    from frazil.client import Client
    from frazil.embedded import Embedded


def start(
    node: Embedded | Client, text: str, *, limits: Limits, engine: Literal["spark"] | None
) -> Result:
    """Run a query, or carry out a statement."""
    if not is_statement(text):
        return node.sql(text, limits=limits, engine=engine)
    if engine is not None:
        raise Malformed(f"--engine {engine} is for queries; leave it out for statements")
    with load_progress(node, text):
        return node.execute(text)
