"""What is said of the fields of a class: the texts below them, which Python keeps in the source
only."""

from __future__ import annotations

import ast
import functools
import inspect
import sys


@functools.cache
def comments_of(kind: type) -> dict[str, str]:
    """The text below each field, those of its bases included, each in one line."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        found |= _module_comments(each.__module__).get(each.__qualname__, {})
    return found


@functools.cache
def _module_comments(name: str) -> dict[str, dict[str, str]]:
    """Of the classes of one module; none where there is no source."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[name]))
    except (OSError, TypeError):
        return {}
    return {each.name: _below(each) for each in tree.body if isinstance(each, ast.ClassDef)}


def _below(tree: ast.ClassDef) -> dict[str, str]:
    found = {}
    for field, below in zip(tree.body, tree.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            found[field.target.id] = " ".join(str(below.value.value).split())
    return found
