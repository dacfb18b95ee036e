"""Dashboard: panels on a grid, as stored and as the web page draws them.

Files omit defaults. Queries of panels are not validated here; their errors show when they run.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from frazil.errors import Malformed
from frazil.model import doc

FORMAT = 1
"""Version of the file format; others are rejected."""
COLUMNS = 12
ROW_MAX = 10_000
HEIGHT_MAX = 60
PANELS_MAX = 100
VARIABLES_MAX = 20
VALUES_MAX = 200
SQL_MAX = 64 * 1024

Title = Annotated[str, Meta(max_length=200)]
Words = Annotated[str, Meta(max_length=2000)]
Short = Annotated[str, Meta(max_length=1024)]
Query = Annotated[str, Meta(max_length=SQL_MAX)]
Pairs = Annotated[tuple[Annotated[str, Meta(max_length=4096)], ...], Meta(max_length=32)]
Labels = Annotated[tuple[Short, ...], Meta(max_length=8)]
PanelId = Annotated[str, Meta(pattern="^[a-z0-9]{1,16}$")]
VariableName = Annotated[str, Meta(pattern="^[a-z][a-z0-9_]{0,31}$")]


class PanelMetric(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One metric over time."""

    name: Annotated[Short, doc("Metric name.")]
    type: Annotated[Short, doc("Needed if several metrics share the name.")] = ""
    aggregates: Annotated[
        tuple[Short, ...],
        Meta(
            min_length=1,
            max_length=6,
            description="For example avg, rate, p99; quantiles can be combined.",
        ),
    ]
    by: Annotated[Labels, doc("Labels to group by.")] = ()
    filter: Annotated[Pairs, doc("Conditions as name=value.")] = ()
    exclude: Annotated[Pairs, doc("Rows to leave out, as name=value.")] = ()
    step: Annotated[Short, doc("Step width, such as 10s, 5m, 1h; empty: automatic.")] = ""


class PanelLogs(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Which log records."""

    search: Annotated[Words, doc("Words that the body must contain.")] = ""
    severity: Annotated[Short, doc("Minimum severity.")] = ""
    filter: Annotated[Pairs, doc("Conditions as name=value.")] = ()
    exclude: Annotated[Pairs, doc("Rows to leave out, as name=value.")] = ()


class Panel(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One rectangle of the grid."""

    id: Annotated[PanelId, doc("Unique in the dashboard.")]
    title: Title = ""
    kind: Annotated[
        Literal["series", "stat", "table", "logs", "top"],
        doc("Time series, single number, table, log records, or top list."),
    ]
    x: Annotated[int, Meta(ge=0, lt=COLUMNS, description="First column.")]
    y: Annotated[int, Meta(ge=0, le=ROW_MAX, description="First row.")]
    w: Annotated[int, Meta(ge=1, le=COLUMNS, description="Width in columns.")]
    h: Annotated[int, Meta(ge=1, le=HEIGHT_MAX, description="Height in rows.")]
    metric: Annotated[PanelMetric | None, doc("Metric to query.")] = None
    sql: Annotated[Query, doc("SQL to run.")] = ""
    logs: Annotated[PanelLogs | None, doc("Log records to show.")] = None
    unit: Annotated[Short, doc("Overrides the metric's unit.")] = ""
    look: Annotated[Literal["lines", "stacked", "bars"], doc("Drawing style of a time series.")] = (
        "lines"
    )
    reduce: Annotated[
        Literal["last", "avg", "min", "max", "sum"],
        doc("How a series becomes one number."),
    ] = "last"
    limit: Annotated[int, Meta(ge=1, le=1000, description="Maximum number of entries.")] = 10


class Variable(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A choice that panels reference as $name."""

    name: VariableName
    label: Annotated[Title, doc("Display name.")] = ""
    kind: Annotated[Literal["label", "sql", "list"], doc("Source of the values.")]
    metric: Annotated[Short, doc("Metric that has the label.")] = ""
    of: Annotated[Short, doc("Label whose values to offer.")] = ""
    sql: Annotated[Query, doc("Query whose first column has the values.")] = ""
    values: Annotated[
        tuple[Short, ...], Meta(max_length=VALUES_MAX, description="Fixed values.")
    ] = ()
    many: Annotated[bool, doc("Allow several values.")] = False
    chosen: Annotated[
        tuple[Short, ...],
        Meta(max_length=VALUES_MAX, description="Default selection; empty selects all."),
    ] = ()


class Dashboard(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Panels on a grid of 12 columns."""

    format: Annotated[Literal[1], doc("Version of the file format.")]
    title: Title
    description: Words = ""
    variables: Annotated[tuple[Variable, ...], Meta(max_length=VARIABLES_MAX)] = ()
    panels: Annotated[tuple[Panel, ...], Meta(max_length=PANELS_MAX)] = ()

    def check(self) -> None:
        """Check rules across fields. `Malformed` if one is violated."""
        for panel in self.panels:
            if panel.x + panel.w > COLUMNS:
                raise Malformed(
                    f"panel {panel.id} has {panel.w} columns from column {panel.x}; the grid has "
                    f"{COLUMNS}"
                )
        _check_unique("panels", [panel.id for panel in self.panels])
        _check_unique("variables", [variable.name for variable in self.variables])


def _check_unique(what: str, names: list[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise Malformed(f"two {what} are named {twice}; names must be unique")
