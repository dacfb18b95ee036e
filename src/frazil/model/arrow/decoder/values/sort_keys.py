"""Sort attributes by key, compared by bytes; of equal keys the last one wins.

All arguments except counts are addresses: of the arena, of a row of nodes, of work rows.
"""

from __future__ import annotations

from frazil.model.arrow.decoder.dispatch import KEY
from frazil.model.protobuf.memory import compare, get, inlined, part, put

RUN = 16
"""Runs of this length are sorted by insertion. Longer lists are merged, so that no input is
quadratic."""


@inlined
def compare_keys(arena: int, one: int, other: int) -> int:
    """Compare two keys: below, equal to or above 0."""
    return compare(
        get(arena, one + KEY),
        get(arena, one + KEY + 1),
        get(arena, other + KEY),
        get(arena, other + KEY + 1),
    )


@inlined
def is_sorted(arena: int, nodes: int, order: int, count: int) -> bool:
    """Return whether `order` sorts these nodes without duplicate keys."""
    for index in range(1, count):
        one, other = get(order, index - 1), get(order, index)
        if compare_keys(arena, get(nodes, one), get(nodes, other)) >= 0:
            return False
    return True


@part
def sort(arena: int, nodes: int, order: int, spare: int, count: int) -> int:
    """Write the sorted order of the nodes. Returns the count after keeping only the last of
    equal keys."""
    for begin in range(0, count, RUN):
        _insert(arena, nodes, order, begin, min(begin + RUN, count))
    width = RUN
    while width < count:
        for begin in range(0, count, 2 * width):
            middle = min(begin + width, count)
            _merge(arena, nodes, order, spare, begin, middle, min(begin + 2 * width, count))
        width *= 2
    kept = 0
    for index in range(count):
        node = get(nodes, get(order, index))
        if kept and compare_keys(arena, get(nodes, get(order, kept - 1)), node) == 0:
            kept -= 1
        put(order, kept, get(order, index))
        kept += 1
    return kept


@part
def _insert(arena: int, nodes: int, order: int, begin: int, end: int) -> None:
    for index in range(begin, end):
        node, place = get(nodes, index), index
        while place > begin:
            before = get(order, place - 1)
            if compare_keys(arena, get(nodes, before), node) <= 0:
                break
            put(order, place, before)
            place -= 1
        put(order, place, index)


@part
def _merge(
    arena: int, nodes: int, order: int, spare: int, begin: int, middle: int, end: int
) -> None:
    """Merge two sorted runs, stable."""
    for index in range(begin, middle):
        put(spare, index, get(order, index))
    left, right, place = begin, middle, begin
    while left < middle:
        first = get(spare, left)
        if right < end:
            second = get(order, right)
            if compare_keys(arena, get(nodes, first), get(nodes, second)) > 0:
                put(order, place, second)
                right += 1
                place += 1
                continue
        put(order, place, first)
        left += 1
        place += 1
