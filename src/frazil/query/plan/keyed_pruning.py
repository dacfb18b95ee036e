"""Pruning of keyed tables: by the key index, and by the bounds of row segments.

Conditions are necessary: a row that they exclude does not match. So where they leave few keys, the
rows of these keys are all that is read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc

from frazil.query.plan.predicates import NS_PER, NS_PER_DAY, Conditions, Predicate, is_never
from frazil.query.scan.keyed_rows import KeyedScan

if TYPE_CHECKING:
    from frazil.tables import RowSegment, RowsPart, TableDefinition

OFFSET = "_offset"
LOOKED_UP_MAX = 1000
"""Keys that are looked up instead of reading segments."""
NOTHING = "no row can match"
OTHER_OFFSETS = "from elsewhere in the log"

Bounds = tuple[int | str, int | str]


class SegmentBounds:
    """Least and greatest key of each row segment, computed when first needed. Any thread may use
    it: at worst, bounds are computed twice."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[RowSegment, Bounds | None] = WeakKeyDictionary()

    def of(self, segment: RowSegment, key: str) -> Bounds | None:
        """Return the bounds, in the units of predicates; None if its type has no predicates."""
        if segment not in self._known:
            self._known[segment] = _bounds_of(segment.batch[key])
        return self._known[segment]


def _bounds_of(column: pa.Array) -> Bounds | None:
    kind, scale = column.type, 1
    if pa.types.is_timestamp(kind):
        column, scale = column.cast(pa.int64()), NS_PER[kind.unit]
    elif pa.types.is_date32(kind):
        column, scale = column.cast(pa.int32()), NS_PER_DAY
    elif not (pa.types.is_integer(kind) or pa.types.is_string(kind)):
        return None
    least, greatest = pc.min_max(column).as_py().values()
    if least is None:
        return None
    return (least, greatest) if isinstance(least, str) else (least * scale, greatest * scale)


def prune_keyed(
    scan: KeyedScan, conditions: Conditions, bounds: SegmentBounds
) -> tuple[KeyedScan, Counter[str]]:
    """Return what must be read, and why segments are skipped."""
    skipped: Counter[str] = Counter()
    if scan.view is None:
        return scan, skipped
    if is_never(conditions):
        skipped[NOTHING] += len(scan.parts)
        return replace(scan, parts=()), skipped
    keys = _keys_in(scan.definition, conditions)
    if keys is not None:
        skipped[f"looked up {len(keys)} keys instead"] += len(scan.parts)
        found = tuple(scan.view.take(keys)) if keys else ()
        return replace(scan, parts=(), found=found), skipped
    kept = []
    for part in scan.parts:
        reason = _reason_to_skip(part, scan.definition, conditions, bounds)
        if reason is None:
            kept.append(part)
        else:
            skipped[reason] += 1
    return replace(scan, parts=tuple(kept)), skipped


def _reason_to_skip(
    part: RowsPart, definition: TableDefinition, conditions: Conditions, bounds: SegmentBounds
) -> str | None:
    if OFFSET in conditions:
        offsets = part.segment.batch[OFFSET]
        ends = (offsets[0].as_py(), offsets[part.length - 1].as_py())
        if not _may_match(ends, conditions[OFFSET]):
            return OTHER_OFFSETS
    if len(definition.key) == 1 and definition.key[0] in conditions:
        (key,) = definition.key
        found = bounds.of(part.segment, key)
        if found is not None and not _may_match(found, conditions[key]):
            return f"without the {key}"
    return None


def _may_match(bounds: Bounds, predicate: Predicate) -> bool:
    least, greatest = bounds
    if isinstance(least, str) or isinstance(greatest, str):
        values = predicate.values
        return values is None or any(str(least) <= value <= str(greatest) for value in values)
    is_below = predicate.high is not None and least > predicate.high
    is_above = predicate.low is not None and greatest < predicate.low
    return not is_below and not is_above


def _keys_in(
    definition: TableDefinition, conditions: Conditions
) -> list[tuple[int | str, ...]] | None:
    """Return all keys that can match; None if they are not known, or too many."""
    choices = []
    for column in definition.key_columns:
        values = _values_of(conditions.get(column.name, Predicate()), column.field().type)
        if values is None:
            return None
        choices.append(values)
    if prod(map(len, choices)) > LOOKED_UP_MAX:
        return None
    return list(product(*choices))


def _values_of(predicate: Predicate, kind: pa.DataType) -> list[int | str] | None:
    if pa.types.is_string(kind):
        return None if predicate.values is None else sorted(predicate.values)
    if not pa.types.is_integer(kind) or predicate.low is None or predicate.low != predicate.high:
        return None
    try:
        pa.scalar(predicate.low, kind)
    except (pa.ArrowInvalid, OverflowError):
        return []  # the column has no such value
    return [predicate.low]
