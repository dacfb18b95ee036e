"""Compiled loops over points: rows become series ids, points are grouped by series and sorted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from frazil.model.protobuf import compiled, part

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

DROPPED = -1
"""Stands for the series of points that are not selected."""
SLOTS_MIN = 1 << 12


@compiled
def number_ids(ids: Longs, numbers: Ints) -> Longs:
    """Write the number of each row's id, from 0 in the order of first occurrence. Returns the row
    where each first occurs. An id is a row of two words. Senders repeat the order of their series,
    so the number after the one before is tried first."""
    slots = np.full(SLOTS_MIN, np.int32(-1))
    firsts = np.empty(SLOTS_MIN, np.int64)
    keys = np.empty((SLOTS_MIN, 2), np.int64)
    count = 0
    number = -1
    for row in range(len(ids)):
        number += 1
        if number < count and _is_key(keys, number, ids, row):
            numbers[row] = number
            continue
        if count * 2 >= len(slots):
            slots = _grown(slots, keys, count)
            firsts, keys = _longer(firsts, keys, len(slots))
        slot = _slot_of(slots, keys, ids, row)
        if slots[slot] < 0:
            slots[slot] = count
            firsts[count] = row
            keys[count, 0], keys[count, 1] = ids[row, 0], ids[row, 1]
            count += 1
        number = slots[slot]
        numbers[row] = number
    return firsts[:count]


@part
def _is_key(keys: Longs, number: int, ids: Longs, row: int) -> bool:
    return bool(keys[number, 0] == ids[row, 0] and keys[number, 1] == ids[row, 1])


@part
def _slot_of(slots: Ints, keys: Longs, ids: Longs, row: int) -> int:
    """Return the slot that has this id, or the empty one where it belongs."""
    mask = len(slots) - 1
    slot = ids[row, 0] & mask
    while slots[slot] >= 0 and not _is_key(keys, slots[slot], ids, row):
        slot = (slot + 1) & mask
    return int(slot)


@part
def _grown(slots: Ints, keys: Longs, count: int) -> Ints:
    larger = np.full(len(slots) * 4, np.int32(-1))
    for number in range(count):
        larger[_slot_of(larger, keys, keys, number)] = number
    return larger


@part
def _longer(firsts: Longs, keys: Longs, size: int) -> tuple[Longs, Longs]:
    longer, more = np.empty(size, np.int64), np.empty((size, 2), np.int64)
    longer[: len(firsts)] = firsts
    more[: len(keys)] = keys
    return longer, more


@compiled
def sort_points(series: Ints, times: Longs, ranks: Longs, starts: Longs, order: Longs) -> int:
    """Fill `order` with the rows of the points, by series, then by time; of several points with one
    time only that with the least rank. `series` may be `DROPPED`. Fills `starts`, one more than
    there are series; returns the number of points."""
    counts = np.zeros(len(starts), np.int64)
    for row in range(len(series)):
        if series[row] >= 0:
            counts[series[row] + 1] += 1
    ends = np.cumsum(counts)
    rows = np.empty(ends[-1], np.int64)
    for row in range(len(series)):
        if series[row] >= 0:
            rows[ends[series[row]]] = row
            ends[series[row]] += 1
    at = 0
    begin = 0
    for number in range(len(starts) - 1):
        starts[number] = at
        end = ends[number]
        at = _sort_one(rows[begin:end], times, ranks, order, at)
        begin = end
    starts[len(starts) - 1] = at
    return at


@part
def _sort_one(rows: Longs, times: Longs, ranks: Longs, order: Longs, at: int) -> int:
    is_sorted = True
    for place in range(1, len(rows)):
        if times[rows[place]] <= times[rows[place - 1]]:
            is_sorted = False
            break
    if not is_sorted:
        rows = rows[np.argsort(ranks[rows], kind="mergesort")]
        rows = rows[np.argsort(times[rows], kind="mergesort")]
    begin = at
    for row in rows:
        if at > begin and times[order[at - 1]] == times[row]:
            continue
        order[at] = row
        at += 1
    return at
