"""model: what telemetry is, and the time it happens in. No I/O.

    signal.py  Signal: logs, traces, metrics, and their topic and table
    units.py   KiB, MiB, GiB
    time.py    Clock (protocol), SystemClock, SteadyTime, Rand, SystemRand

    arrow/     telemetry as Arrow: schemas, decoders, encoders
    protobuf/  the compiled protobuf reader

Lowest floor of the house: imports nothing of ours but the errors.
"""

from frazil.model.signal import Signal
from frazil.model.time import NS_PER_MS, Clock, Rand, SteadyTime, SystemClock, SystemRand
from frazil.model.units import GiB, KiB, MiB

__all__ = [
    "NS_PER_MS",
    "Clock",
    "GiB",
    "KiB",
    "MiB",
    "Rand",
    "Signal",
    "SteadyTime",
    "SystemClock",
    "SystemRand",
]
