"""What a node says of itself to Loki's clients: version and limits."""

from __future__ import annotations

from frazil.httpd import Response
from frazil.languages import SERIES_MAX
from frazil.serve.doors.endpoint import DoorRequest
from frazil.serve.doors.loki.params import LIMIT_MAX
from frazil.serve.http.handler import Handler
from frazil.serve.http.responses import answer_of
from frazil.version import __version__

LOKI_VERSION = "3.5.0"
"""The version whose API this is; clients switch features on by it."""


async def build_info(_: Handler, __: DoorRequest) -> Response:
    facts = {
        "version": LOKI_VERSION,
        "revision": f"frazil-{__version__}",
        "branch": "",
        "buildUser": "",
        "buildDate": "",
        "goVersion": "",
    }
    return answer_of(facts)


async def drilldown_limits(handler: Handler, _: DoorRequest) -> Response:
    """What Logs Drilldown may ask for."""
    limits = {
        "discover_log_levels": True,
        "discover_service_name": ["service_name"],
        "log_level_fields": ["detected_level", "level", "severity"],
        "max_entries_limit_per_query": LIMIT_MAX,
        "max_line_size_truncate": False,
        "max_query_bytes_read": "0B",
        "max_query_length": "0s",
        "max_query_lookback": "0s",
        "max_query_range": "0s",
        "max_query_series": SERIES_MAX,
        "metric_aggregation_enabled": False,
        "pattern_persistence_enabled": False,
        "query_timeout": "30s",
        "retention_period": "0s",
        "volume_enabled": True,
        "volume_max_series": LIMIT_MAX,
    }
    return answer_of(
        {
            "limits": limits,
            "pattern_ingester_enabled": True,
            "version": LOKI_VERSION,
            "maxDetectedFields": 1000,
            "maxDetectedValues": 1000,
        }
    )
