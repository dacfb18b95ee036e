"""A native histogram as Prometheus writes it into a label."""

from __future__ import annotations

from frazil.languages.promql.histogram import NativeHistogram, slices_of
from frazil.languages.promql.numbers import short


def histogram_text(histogram: NativeHistogram) -> str:
    """Return the count, the sum and all buckets with something in them."""
    parts = [f"count:{short(histogram.count)}", f"sum:{short(histogram.sum)}"]
    slices = slices_of(histogram)
    for lower, upper, count in zip(*slices, strict=True):
        is_zero = not histogram.is_custom and lower == -histogram.zero_threshold
        is_zero = is_zero and upper == histogram.zero_threshold
        left = "[" if is_zero or (upper <= 0 and not histogram.is_custom) else "("
        right = ")" if upper <= 0 and not is_zero and not histogram.is_custom else "]"
        parts.append(f"{left}{short(lower)},{short(upper)}{right}:{short(count)}")
    return "{" + ", ".join(parts) + "}"
