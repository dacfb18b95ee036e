"""The doors of a node."""

from __future__ import annotations

from frazil.serve.doors.endpoint import Door
from frazil.serve.doors.jaeger.door import JAEGER
from frazil.serve.doors.loki.door import LOKI
from frazil.serve.doors.mcp import MCP
from frazil.serve.doors.prometheus.door import PROMETHEUS
from frazil.serve.doors.registry.door import REGISTRY
from frazil.serve.doors.tempo.door import TEMPO

DOORS: tuple[Door, ...] = (JAEGER, LOKI, MCP, PROMETHEUS, REGISTRY, TEMPO)
