"""The doors of a node."""

from __future__ import annotations

from frazil.serve.doors.endpoint import Door
from frazil.serve.doors.loki.door import LOKI

DOORS: tuple[Door, ...] = (LOKI,)
