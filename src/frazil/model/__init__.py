"""model: what telemetry is, and the time it happens in. No I/O.

    time.py    Clock (protocol), SystemClock, SteadyTime, Rand, SystemRand

    arrow/     telemetry as Arrow: schemas, decoders, encoders
    protobuf/  the compiled protobuf reader

Lowest floor of the house: imports nothing of ours but the errors.
"""

from frazil.model.time import NS_PER_MS, Clock, Rand, SteadyTime, SystemClock, SystemRand

__all__ = ["NS_PER_MS", "Clock", "Rand", "SteadyTime", "SystemClock", "SystemRand"]
