"""All metrics as text: Prometheus 0.0.4, or OpenMetrics 1.0 if the client accepts it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from frazil.serve.context import NodeContext
from frazil.serve.metrics.gauges import gauges
from frazil.serve.status.collect import status_with
from frazil.status import Family, merged, own_families, process_info

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text"
OLD_KINDS = {"info": "gauge"}
"""Types of OpenMetrics that 0.0.4 does not have."""


def families(context: NodeContext) -> Iterator[Family]:
    """Every metric family of the node's processes, each name once."""
    writer = context.writer_status()
    yield from merged([*writer.families, *own_families()])
    yield from gauges(
        status_with(context, writer), [("writer", writer.process), ("reader", process_info())]
    )


def exposition(context: NodeContext, accept: str) -> tuple[str, bytes]:
    """Return content type and text for an `Accept` header. Call it in a thread."""
    is_open = wants_openmetrics(accept)
    text = openmetrics_text(families(context)) if is_open else prometheus_text(families(context))
    return (OPENMETRICS if is_open else PROMETHEUS), text.encode()


def wants_openmetrics(accept: str) -> bool:
    """Return whether an `Accept` header lists OpenMetrics with a weight above 0."""
    for part in accept.split(","):
        kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
        if kind == OPENMETRICS_TYPE and "q=0" not in parameters:
            return True
    return False


def prometheus_text(families: Iterable[Family]) -> str:
    return "".join(_lines(families, is_open=False))


def openmetrics_text(families: Iterable[Family]) -> str:
    return "".join(_lines(families, is_open=True)) + "# EOF\n"


def _lines(families: Iterable[Family], *, is_open: bool) -> Iterator[str]:
    for family in sorted(families, key=lambda family: family.name):
        head = family.name if is_open else family.full_name
        kind = family.kind if is_open else OLD_KINDS.get(family.kind, family.kind)
        yield f"# HELP {head} {_escaped(family.help_text, is_open)}\n"
        yield f"# TYPE {head} {kind}\n"
        if is_open and family.unit:
            yield f"# UNIT {head} {family.unit}\n"
        suffix = "_total" if family.kind == "counter" else ""
        for point in family.points:
            labels = ",".join(f'{name}="{_escaped(v, True)}"' for name, v in point.labels)
            braces = f"{{{labels}}}" if labels else ""
            name = f"{family.name}{point.suffix or suffix}"
            yield f"{name}{braces} {_number(point.value)}\n"


def _escaped(text: str, has_quotes: bool) -> str:
    """Escape a label value, or a help text; only 0.0.4 leaves quotes in help texts alone."""
    text = text.replace("\\", r"\\").replace("\n", r"\n")
    return text.replace('"', r"\"") if has_quotes else text


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
