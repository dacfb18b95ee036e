"""Aggregations over the series of a group, step by step."""

from __future__ import annotations

import math

import numpy as np

from frazil.languages.promql.kernels.arrays import Flags, Floats, Longs
from frazil.languages.promql.kernels.sums import add_exactly, quantile_of
from frazil.model.protobuf import compiled


@compiled
def group_sums(group: Longs, groups: int, values: Floats, present: Flags) -> Floats:
    """The sum over each group."""
    steps = values.shape[1]
    total = np.zeros((groups, steps))
    rest = np.zeros((groups, steps))
    for row in range(len(group)):
        into = group[row]
        for step in range(steps):
            if present[row, step]:
                total[into, step], rest[into, step] = add_exactly(
                    values[row, step], total[into, step], rest[into, step]
                )
    return total + rest


@compiled
def group_means(group: Longs, groups: int, values: Floats, present: Flags) -> Floats:
    """The mean over each group, also where the sum is too large for a number."""
    steps = values.shape[1]
    total = np.zeros((groups, steps))
    rest = np.zeros((groups, steps))
    count = np.zeros((groups, steps))
    is_running = np.zeros((groups, steps), np.bool_)
    for row in range(len(group)):
        into = group[row]
        for step in range(steps):
            if not present[row, step]:
                continue
            value = values[row, step]
            count[into, step] += 1
            members = count[into, step]
            if members == 1:
                total[into, step] = value
                continue
            if not is_running[into, step]:
                sum_, left = add_exactly(value, total[into, step], rest[into, step])
                if not math.isinf(sum_):
                    total[into, step], rest[into, step] = sum_, left
                    continue
                is_running[into, step] = True
                total[into, step] /= members - 1
                rest[into, step] /= members - 1
            share = (members - 1) / members
            total[into, step], rest[into, step] = add_exactly(
                value / members, share * total[into, step], share * rest[into, step]
            )
    for into in range(groups):
        for step in range(steps):
            members = 1.0 if is_running[into, step] else count[into, step]
            if members > 0:
                total[into, step] = total[into, step] / members + rest[into, step] / members
    return total


@compiled
def group_extremes(
    group: Longs, groups: int, values: Floats, present: Flags, sign: float
) -> Floats:
    """The greatest value times `sign` over each group; NaN only if there is nothing else."""
    steps = values.shape[1]
    found = np.full((groups, steps), math.nan)
    for row in range(len(group)):
        into = group[row]
        for step in range(steps):
            if present[row, step]:
                old, new = found[into, step], values[row, step]
                if math.isnan(old) or sign * new > sign * old:
                    found[into, step] = new
    return found


@compiled
def group_counts(group: Longs, groups: int, present: Flags) -> Longs:
    """How many values each group has."""
    steps = present.shape[1]
    found = np.zeros((groups, steps), np.int64)
    for row in range(len(group)):
        for step in range(steps):
            found[group[row], step] += present[row, step]
    return found


@compiled
def group_variances(group: Longs, groups: int, values: Floats, present: Flags) -> Floats:
    """The variance over each group."""
    steps = values.shape[1]
    count = np.zeros((groups, steps))
    mean = np.zeros((groups, steps))
    squares = np.zeros((groups, steps))
    for row in range(len(group)):
        into = group[row]
        for step in range(steps):
            if not present[row, step]:
                continue
            value = values[row, step]
            count[into, step] += 1
            if count[into, step] == 1:
                mean[into, step] = value
                squares[into, step] = 0.0 if math.isfinite(value) else math.nan
                continue
            delta = value - mean[into, step]
            mean[into, step] += delta / count[into, step]
            squares[into, step] += delta * (value - mean[into, step])
    for into in range(groups):
        for step in range(steps):
            if count[into, step] > 0:
                squares[into, step] /= count[into, step]
    return squares


@compiled
def group_quantiles(group: Longs, groups: int, values: Floats, present: Flags, q: Floats) -> Floats:
    """A quantile over each group, by step."""
    steps = values.shape[1]
    order = np.argsort(group, kind="mergesort")
    found = np.zeros((groups, steps))
    members = np.empty(len(group))
    begin = 0
    while begin < len(order):
        into = group[order[begin]]
        end = begin
        while end < len(order) and group[order[end]] == into:
            end += 1
        for step in range(steps):
            count = 0
            for at in range(begin, end):
                if present[order[at], step]:
                    members[count] = values[order[at], step]
                    count += 1
            found[into, step] = quantile_of(q[step], members[:count])
        begin = end
    return found
