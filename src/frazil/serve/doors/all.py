"""The doors of a node."""

from __future__ import annotations

from frazil.serve.doors.endpoint import Door

DOORS: tuple[Door, ...] = ()
