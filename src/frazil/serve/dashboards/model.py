"""Dashboard: panels on a grid, as a file has them and the web page draws them.

What is as it is without being said is not said in a file. What a panel asks is not looked at here:
SQL that is wrong is said where it is asked.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from frazil.errors import Malformed

FORMAT = 1
"""Of the files. One of another format is not read."""
COLUMNS = 12
ROW_MAX = 10_000
HEIGHT_MAX = 60
PANELS_MAX = 100
VARIABLES_MAX = 20
VALUES_MAX = 200
SQL_MAX = 64 * 1024

Title = Annotated[str, msgspec.Meta(max_length=200)]
Words = Annotated[str, msgspec.Meta(max_length=2000)]
Short = Annotated[str, msgspec.Meta(max_length=1024)]
Query = Annotated[str, msgspec.Meta(max_length=SQL_MAX)]
Pairs = Annotated[
    tuple[Annotated[str, msgspec.Meta(max_length=4096)], ...], msgspec.Meta(max_length=32)
]
Labels = Annotated[tuple[Short, ...], msgspec.Meta(max_length=8)]
PanelId = Annotated[str, msgspec.Meta(pattern="^[a-z0-9]{1,16}$")]
VariableName = Annotated[str, msgspec.Meta(pattern="^[a-z][a-z0-9_]{0,31}$")]


class PanelMetric(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One metric over time."""

    name: Short
    """Of the metric."""
    type: Short = ""
    """Needed only where a name is used for several kinds."""
    aggregates: Annotated[tuple[Short, ...], msgspec.Meta(min_length=1, max_length=6)]
    """As avg, rate, p99; several quantiles go together."""
    by: Labels = ()
    """Labels: there is a line for each of their values."""
    filter: Pairs = ()
    """name=value"""
    exclude: Pairs = ()
    """The same, for what must not be."""
    step: Short = ""
    """As 10s, 5m, 1h; empty for one that fits."""


class PanelLogs(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Which log records."""

    search: Words = ""
    """Words that must be there."""
    severity: Short = ""
    """At least so severe."""
    filter: Pairs = ()
    """name=value"""
    exclude: Pairs = ()
    """The same, for what must not be."""


class Panel(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One rectangle of the grid, and what is in it."""

    id: PanelId
    """Unlike those of the other panels."""
    title: Title = ""
    kind: Literal["series", "stat", "table", "logs", "top"]
    """Lines over time, one number, rows, log records, or the largest of several."""
    x: Annotated[int, msgspec.Meta(ge=0, lt=COLUMNS)]
    """The column it begins in."""
    y: Annotated[int, msgspec.Meta(ge=0, le=ROW_MAX)]
    """The row it begins in."""
    w: Annotated[int, msgspec.Meta(ge=1, le=COLUMNS)]
    """Columns."""
    h: Annotated[int, msgspec.Meta(ge=1, le=HEIGHT_MAX)]
    """Rows."""
    metric: PanelMetric | None = None
    """What is asked, if it is a metric."""
    sql: Query = ""
    """What is asked, if it is SQL."""
    logs: PanelLogs | None = None
    """What is asked, if it is log records."""
    unit: Short = ""
    """In place of the metric's own."""
    look: Literal["lines", "stacked", "bars"] = "lines"
    """How lines are drawn."""
    reduce: Literal["last", "avg", "min", "max", "sum"] = "last"
    """What is made of a line where one number is shown."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10
    """Of a top list or of log records, at most."""


class Variable(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Something to choose, which panels have as $name."""

    name: VariableName
    label: Title = ""
    """What people call it."""
    kind: Literal["label", "sql", "list"]
    """Where its values come from."""
    metric: Short = ""
    """The metric whose label it is."""
    of: Short = ""
    """The label."""
    sql: Query = ""
    """Whose first column has the values."""
    values: Annotated[tuple[Short, ...], msgspec.Meta(max_length=VALUES_MAX)] = ()
    """The values themselves."""
    many: bool = False
    """May several be chosen?"""
    chosen: Annotated[tuple[Short, ...], msgspec.Meta(max_length=VALUES_MAX)] = ()
    """Those that are chosen when nobody has; none is all."""


class Dashboard(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Panels on a grid of 12 columns."""

    format: Literal[1]
    """Of the file."""
    title: Title
    description: Words = ""
    variables: Annotated[tuple[Variable, ...], msgspec.Meta(max_length=VARIABLES_MAX)] = ()
    panels: Annotated[tuple[Panel, ...], msgspec.Meta(max_length=PANELS_MAX)] = ()

    def check(self) -> None:
        """What the types of the fields cannot say. `Malformed` says what is wrong."""
        for panel in self.panels:
            if panel.x + panel.w > COLUMNS:
                raise Malformed(
                    f"the panel {panel.id} has {panel.w} columns from column {panel.x} on; there "
                    f"are {COLUMNS}"
                )
        _check_alone("panels", [panel.id for panel in self.panels])
        _check_alone("variables", [variable.name for variable in self.variables])


def _check_alone(what: str, names: list[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise Malformed(f"two {what} are called {twice}; give each a name of its own")


def text_of(dashboard: Dashboard) -> bytes:
    """As a file has it: lines that people read and git compares."""
    written = msgspec.json.encode(dashboard, order="sorted")
    return msgspec.json.format(written, indent=2) + b"\n"


def dashboard_of(text: bytes) -> Dashboard:
    """What a file has. `Malformed` says what is wrong with it."""
    try:
        found = msgspec.json.decode(text, type=Dashboard)
    except msgspec.ValidationError as error:
        raise Malformed(f"it is no dashboard: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"it is not JSON: {error}") from None
    found.check()
    return found
