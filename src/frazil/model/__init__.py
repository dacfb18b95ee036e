"""model: what telemetry is, and the time it happens in. No I/O.

    time.py    Clock (protocol), SystemClock, SteadyTime, Rand

Lowest floor of the house: imports nothing of ours but the errors.
"""

from frazil.model.time import NS_PER_MS, Clock, Rand, SteadyTime, SystemClock

__all__ = ["NS_PER_MS", "Clock", "Rand", "SteadyTime", "SystemClock"]
