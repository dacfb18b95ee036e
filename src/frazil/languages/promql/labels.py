"""Labels of series: what operators keep of them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import TypeVar

from frazil.languages.promql.points import LabelSet

Key = TypeVar("Key", bound=Hashable)

NAME = "__name__"
BUCKET = "le"
METADATA = frozenset((NAME, "__type__", "__unit__"))
"""What belongs to a metric, and not to a value computed from it."""


def label(labels: LabelSet, name: str) -> str:
    """Return the value of a label; of one that is absent, the empty text."""
    for key, value in labels:
        if key == name:
            return value
    return ""


def metric_name(labels: LabelSet) -> str:
    """Return the name of the metric, or the empty text."""
    return label(labels, NAME)


def keep(labels: LabelSet, names: Collection[str]) -> LabelSet:
    """Return some of the labels."""
    return tuple(pair for pair in labels if pair[0] in names)


def drop(labels: LabelSet, names: Collection[str]) -> LabelSet:
    """Return all labels but some."""
    return tuple(pair for pair in labels if pair[0] not in names)


def with_labels(labels: LabelSet, changes: Mapping[str, str]) -> LabelSet:
    """Return labels with others set; the empty text removes one."""
    changed = {**dict(labels), **changes}
    return tuple(sorted((name, value) for name, value in changed.items() if value))


def written(labels: LabelSet) -> str:
    """Return labels as Prometheus writes them in messages."""
    return "{" + ", ".join(f"{name}={quoted(value)}" for name, value in labels) + "}"


def quoted(text: str) -> str:
    """Return a text in double quotes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def is_text(name: str) -> bool:
    """Whether a name was valid UTF-8 in the query."""
    return "\ufffd" not in name


def group_numbers(keys: Iterable[Key]) -> tuple[list[int], list[Key]]:
    """Number keys in the order of their first appearance; equal ones get the same number."""
    numbers: dict[Key, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys], list(numbers)
