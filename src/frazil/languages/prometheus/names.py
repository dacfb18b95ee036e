"""Names of metrics and labels as Prometheus' OTLP receiver makes them, with its defaults:
characters are escaped to underscores, units and types become suffixes.

    http.server.request.duration, s, histogram     http_server_request_duration_seconds
    requests, {request}, monotonic sum             requests_total
    system.cpu.utilization, 1, gauge               system_cpu_utilization_ratio
"""

from __future__ import annotations

import re

UNITS = {
    "d": "days",
    "h": "hours",
    "min": "minutes",
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
    "By": "bytes",
    "KiBy": "kibibytes",
    "MiBy": "mebibytes",
    "GiBy": "gibibytes",
    "TiBy": "tibibytes",
    "KBy": "kilobytes",
    "MBy": "megabytes",
    "GBy": "gigabytes",
    "TBy": "terabytes",
    "m": "meters",
    "V": "volts",
    "A": "amperes",
    "J": "joules",
    "W": "watts",
    "g": "grams",
    "Cel": "celsius",
    "Hz": "hertz",
    "1": "",
    "%": "percent",
}
"""UCUM codes of OpenTelemetry, and the words of Prometheus."""
PER_UNITS = {
    "s": "second",
    "m": "minute",
    "h": "hour",
    "d": "day",
    "w": "week",
    "mo": "month",
    "y": "year",
}
NAME = "__name__"
ESCAPED = "U__"
"""Begins a name whose characters are escaped, as Grafana sends them in paths."""

_NOT_IN_METRIC = re.compile(r"[^a-zA-Z0-9:]")
_NOT_IN_LABEL = re.compile(r"[^a-zA-Z0-9]")
_LEGACY_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*", re.ASCII)
_LEGACY_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)
_ESCAPE = re.compile(r"__|_([0-9a-fA-F]{1,6})_")


def metric_name_of(name: str, unit: str, metric_type: str, *, is_monotonic: bool) -> str | None:
    """Return the name of a metric; None if nothing of it is left."""
    tokens = [token for token in _NOT_IN_METRIC.split(name) if token]
    main, per = (_clean(suffix) for suffix in _unit_suffixes(unit))
    _add_unit(tokens, main, per)
    if metric_type == "sum" and is_monotonic:
        tokens = [*(token for token in tokens if token != "total"), "total"]
    if unit == "1" and metric_type == "gauge":
        tokens = [*(token for token in tokens if token != "ratio"), "ratio"]
    made = "_".join(tokens)
    if made[:1].isdigit():
        made = f"_{made}"
    return made if made and (made == name or made.strip("_")) else None


def _add_unit(tokens: list[str], main: str, per: str) -> None:
    """Append the unit, unless the name has it."""
    main = "" if main in tokens else main
    per = "" if per == "per_" else per.removesuffix("_")
    per = "" if per in tokens else per
    if per:
        main = main.removesuffix("_")
    tokens += [suffix for suffix in (main, per) if suffix]


def unit_name_of(unit: str) -> str:
    """Return the unit as `/api/v1/metadata` has it."""
    main, per = (_clean(suffix) for suffix in _unit_suffixes(unit))
    return "_".join(part for part in (main, per) if part).removeprefix("_").removesuffix("_")


def _unit_suffixes(unit: str) -> tuple[str, str]:
    main, _, per = unit.partition("/")
    return _unit(main, UNITS, ""), _unit(per, PER_UNITS, "per_")


def _unit(code: str, words: dict[str, str], prefix: str) -> str:
    code = code.strip()
    if not code or "{" in code or "}" in code:
        return ""
    word = words.get(code, code)
    return f"{prefix}{word}" if word else ""


def _clean(unit: str) -> str:
    return re.sub("__+", "_", _NOT_IN_METRIC.sub("_", unit)).removeprefix("_")


def label_name_of(name: str) -> str | None:
    """Return the label of an attribute; None if nothing of it is left."""
    made = _NOT_IN_LABEL.sub("_", name)
    if made[:1].isdigit():
        made = f"key_{made}"
    elif made.startswith("_") and not made.startswith("__"):
        made = f"key{made}"
    return made if made.strip("_") else None


def is_legacy_metric(name: str) -> bool:
    """Return whether a metric name needs no quotes in PromQL."""
    return _LEGACY_METRIC.fullmatch(name) is not None


def is_legacy_label(name: str) -> bool:
    """Return whether a label name needs no quotes in PromQL."""
    return _LEGACY_LABEL.fullmatch(name) is not None


def unescaped(name: str) -> str:
    """Return `service.name` for `U__service_2e_name`, and other names as they are."""
    if not name.startswith(ESCAPED):
        return name
    return _ESCAPE.sub(_character, name.removeprefix(ESCAPED))


def _character(found: re.Match[str]) -> str:
    return "_" if found[1] is None else chr(int(found[1], 16))
