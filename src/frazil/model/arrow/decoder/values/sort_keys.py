"""Attributes in the order of their keys, compared by bytes; of equal keys the last one counts.

All arguments but counts are addresses: of the heap, of a row of nodes, of rows for the work.
"""

from __future__ import annotations

from frazil.model.arrow.decoder.dispatch import KEY
from frazil.model.protobuf.memory import compare, get, inlined, part, put

RUN = 16
"""So many are sorted by insertion. Longer lists are merged, so that nobody can make us slow."""


@inlined
def compare_keys(heap: int, one: int, other: int) -> int:
    """Below, at or above 0."""
    return compare(
        get(heap, one + KEY),
        get(heap, one + KEY + 1),
        get(heap, other + KEY),
        get(heap, other + KEY + 1),
    )


@inlined
def is_sorted(heap: int, nodes: int, order: int, count: int) -> bool:
    """Is this the order of these nodes, and no key there twice?"""
    for index in range(1, count):
        one, other = get(order, index - 1), get(order, index)
        if compare_keys(heap, get(nodes, one), get(nodes, other)) >= 0:
            return False
    return True


@part
def sort(heap: int, nodes: int, order: int, spare: int, count: int) -> int:
    """Write to `order` which of the nodes comes first, second, ...; how many are left when of
    those with the same key only the last one stays."""
    for begin in range(0, count, RUN):
        _insert(heap, nodes, order, begin, min(begin + RUN, count))
    width = RUN
    while width < count:
        for begin in range(0, count, 2 * width):
            middle = min(begin + width, count)
            _merge(heap, nodes, order, spare, begin, middle, min(begin + 2 * width, count))
        width *= 2
    kept = 0
    for index in range(count):
        node = get(nodes, get(order, index))
        if kept and compare_keys(heap, get(nodes, get(order, kept - 1)), node) == 0:
            kept -= 1
        put(order, kept, get(order, index))
        kept += 1
    return kept


@part
def _insert(heap: int, nodes: int, order: int, begin: int, end: int) -> None:
    for index in range(begin, end):
        node, place = get(nodes, index), index
        while place > begin:
            before = get(order, place - 1)
            if compare_keys(heap, get(nodes, before), node) <= 0:
                break
            put(order, place, before)
            place -= 1
        put(order, place, index)


@part
def _merge(
    heap: int, nodes: int, order: int, spare: int, begin: int, middle: int, end: int
) -> None:
    """Make one sorted run of two. Of equals, those of the first come first."""
    for index in range(begin, middle):
        put(spare, index, get(order, index))
    left, right, place = begin, middle, begin
    while left < middle:
        first = get(spare, left)
        if right < end:
            second = get(order, right)
            if compare_keys(heap, get(nodes, first), get(nodes, second)) > 0:
                put(order, place, second)
                right += 1
                place += 1
                continue
        put(order, place, first)
        left += 1
        place += 1
