"""Labels of series, made once of the attributes of their points and resources, and kept by the
hash of both maps."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from frazil.languages.prometheus.names import NAME, label_name_of
from frazil.languages.promql.points import LabelSet
from frazil.query import Ask

SERVICE, NAMESPACE, INSTANCE = "service.name", "service.namespace", "service.instance.id"
JOB_LABEL, INSTANCE_LABEL = "job", "instance"
MAPS = "attributes, resource_attributes"
TARGET_MAPS = "resource_attributes, resource_attributes"
"""The maps that tell the series of a metric apart, and those of `target_info`."""
KEPT_MAX = 100_000
"""Series whose labels are kept, about 1 KiB each."""
NAMES_MAX = 10_000

_label_name = lru_cache(NAMES_MAX)(label_name_of)
Pairs = Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesLabels:
    """Labels without `__name__`, sorted by name."""

    escaped: LabelSet
    original: LabelSet


def labels_of(attributes: Pairs, resource: Mapping[str, str]) -> SeriesLabels:
    """Return the labels of a point. Attributes whose names become equal are joined, as Prometheus
    does."""
    escaped: dict[str, str] = {}
    original: dict[str, str] = {}
    for key, value in attributes:  # sorted by key
        name = None if key == NAME else _label_name(key)
        if name is None:
            continue
        before = escaped.get(name)
        escaped[name] = f"{before};{value}" if before else value
        original[key] = value
    identity = _identity(resource)
    return SeriesLabels(
        escaped=_label_set({**escaped, **identity}), original=_label_set({**original, **identity})
    )


def target_labels_of(resource: Mapping[str, str]) -> SeriesLabels | None:
    """Return the labels of `target_info`; None if the resource has no other attributes than those
    of its identity, or no identity."""
    rest = [(key, resource[key]) for key in resource if key not in (SERVICE, NAMESPACE, INSTANCE)]
    if not rest or not _identity(resource):
        return None
    return labels_of(rest, resource)


def _identity(resource: Mapping[str, str]) -> dict[str, str]:
    identity = {}
    if SERVICE in resource:
        job = resource[SERVICE]
        identity[JOB_LABEL] = f"{resource[NAMESPACE]}/{job}" if NAMESPACE in resource else job
    if INSTANCE in resource:
        identity[INSTANCE_LABEL] = resource[INSTANCE]
    return {name: value for name, value in identity.items() if value}


def _label_set(labels: Mapping[str, str]) -> LabelSet:
    return tuple(sorted((name, value) for name, value in labels.items() if value))


def with_label(labels: LabelSet, name: str, value: str) -> LabelSet:
    """Return labels with another, which wins."""
    place = bisect_left(labels, (name, ""))
    end = place
    while end < len(labels) and labels[end][0] == name:
        end += 1
    return (*labels[:place], (name, value), *labels[end:])


class KnownLabels:
    """Labels by the hash of their maps. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[bytes, SeriesLabels | None] = {}

    def of(
        self, ids: Sequence[bytes], load: Callable[[list[int]], Mapping[bytes, SeriesLabels | None]]
    ) -> list[SeriesLabels | None]:
        """Return the labels of series; None for one that is not shown. `load` reads those that are
        not known, by their places."""
        known = self._known
        missing = [place for place, each in enumerate(ids) if each not in known]
        if not missing:
            return [known[each] for each in ids]
        loaded = load(missing)
        with self._lock:
            kept = {**self._known, **loaded}
            if len(kept) > KEPT_MAX:
                kept = dict(list(kept.items())[-KEPT_MAX // 2 :])
            self._known = kept
        return [loaded[each] if each in loaded else known.get(each) for each in ids]


def load_labels(ask: Ask, condition: str, *, is_target: bool) -> dict[bytes, SeriesLabels | None]:
    """Read the labels of all rows with a condition."""
    maps = TARGET_MAPS if is_target else MAPS
    columns = "resource_attributes" if is_target else MAPS
    rows = ask(f"SELECT DISTINCT hash_maps({maps}) AS id, {columns} FROM metrics WHERE {condition}")
    found: dict[bytes, SeriesLabels | None] = {}
    for row in rows.to_pylist():
        resource = dict(row["resource_attributes"])
        found[row["id"]] = (
            target_labels_of(resource) if is_target else labels_of(row["attributes"], resource)
        )
    return found
