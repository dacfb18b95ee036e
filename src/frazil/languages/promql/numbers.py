"""Numbers as Prometheus writes them."""

from __future__ import annotations

import math

import numpy as np


def positional(value: float) -> str:
    """Return a number without an exponent, as short as it can be read back."""
    if math.isfinite(value):
        return str(np.format_float_positional(value, trim="-"))
    return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")


def short(value: float) -> str:
    """Return a number with an exponent if it is very large or small."""
    if not math.isfinite(value):
        return positional(value)
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    exponent = math.floor(math.log10(abs(value)))
    if -4 <= exponent < 6:
        return positional(value)
    return str(np.format_float_scientific(value, trim="-", exp_digits=2))
