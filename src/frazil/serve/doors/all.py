"""The doors of a node."""

from __future__ import annotations

from frazil.serve.doors.endpoint import Door
from frazil.serve.doors.loki.door import LOKI
from frazil.serve.doors.mcp import MCP
from frazil.serve.doors.prometheus.door import PROMETHEUS

DOORS: tuple[Door, ...] = (LOKI, MCP, PROMETHEUS)
