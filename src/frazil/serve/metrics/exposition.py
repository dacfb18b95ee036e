"""All metrics as text: Prometheus 0.0.4, or OpenMetrics 1.0 for whoever asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from frazil.metrics import declared
from frazil.serve.context import NodeContext
from frazil.serve.metrics.aliases import aliases
from frazil.serve.metrics.families import Family, family_of
from frazil.serve.metrics.gauges import measured

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text"
OLD_KINDS = {"info": "gauge"}
"""What 0.0.4 calls what it has no word for."""


def families(rooms: NodeContext) -> Iterator[Family]:
    """Everything that is shown, each name once."""
    yield from map(family_of, declared())
    yield from measured(rooms)
    yield from aliases(rooms)


def exposition(rooms: NodeContext, accept: str) -> tuple[str, bytes]:
    """The type and the text that are answered to an `Accept` header. Call it from the loop."""
    is_open = wants_openmetrics(accept)
    text = openmetrics_text(families(rooms)) if is_open else prometheus_text(families(rooms))
    return (OPENMETRICS if is_open else PROMETHEUS), text.encode()


def wants_openmetrics(accept: str) -> bool:
    """Does it name OpenMetrics, and not only to refuse it? Prometheus itself sends weights."""
    for part in accept.split(","):
        kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
        if kind == OPENMETRICS_TYPE and "q=0" not in parameters:
            return True
    return False


def prometheus_text(shown: Iterable[Family]) -> str:
    return "".join(_lines(shown, is_open=False))


def openmetrics_text(shown: Iterable[Family]) -> str:
    return "".join(_lines(shown, is_open=True)) + "# EOF\n"


def _lines(shown: Iterable[Family], *, is_open: bool) -> Iterator[str]:
    for family in sorted(shown, key=lambda each: each.name):
        head = family.name if is_open else family.shown_name
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
    """Help texts of 0.0.4 have no quotes to close."""
    text = text.replace("\\", r"\\").replace("\n", r"\n")
    return text.replace('"', r"\"") if has_quotes else text


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
