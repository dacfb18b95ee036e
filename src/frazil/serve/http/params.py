"""Types of request parameters, with the limits and descriptions that OpenAPI shows.

Patterns are for readers of the description; the code that parses a value gives better errors.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from frazil.model import doc

NAME_MAX = 1024
"""Characters of a name, such as a service or an attribute."""
TEXT_MAX = 4096
"""Characters of a search text."""
DURATION_MS_MAX = 9e12
"""Close to the largest number of nanoseconds in 64 bits."""

_AGE = "[0-9]{1,9}[smhdw]"


def _examples(*examples: Any, **schema: Any) -> Meta:
    return Meta(examples=list(examples) or None, extra_json_schema=schema)


Name = Annotated[str, Meta(max_length=NAME_MAX)]
Text = Annotated[str, Meta(max_length=TEXT_MAX)]
Timestamp = Annotated[
    str,
    Meta(max_length=64),
    _examples(
        "15m",
        "2026-11-16T10:00:00Z",
        anyOf=[{"format": "date-time"}, {"pattern": f"^{_AGE}$"}],
    ),
]
Step = Annotated[str, Meta(max_length=10), _examples("5m", pattern=f"^{_AGE}$")]
Pair = Annotated[
    str, Meta(max_length=TEXT_MAX), _examples("service_name=checkout", pattern="^[^=]+=")
]
Pairs = Annotated[tuple[Pair, ...], Meta(max_length=32)]
Names = Annotated[tuple[Name, ...], Meta(max_length=32)]
Groups = Annotated[tuple[Name, ...], Meta(max_length=8)]
Severity = Annotated[
    str, _examples("WARN", enum=["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"])
]
TraceId = Annotated[
    str,
    Meta(pattern="^[0-9a-fA-F]{32}$", description="32 hexadecimal digits."),
    _examples("0af7651916cd43dd8448eb211c80319c"),
]
TraceIdPrefix = Annotated[
    str,
    Meta(pattern="^[0-9a-fA-F]{4,32}$", description="4 to 32 hexadecimal digits."),
    _examples("0af76519"),
]
SpanId = Annotated[
    str,
    Meta(pattern="^[0-9a-fA-F]{16}$", description="16 hexadecimal digits."),
    _examples("b7ad6b7169203331"),
]
LogCursor = Annotated[
    str,
    Meta(max_length=70),
    _examples(pattern="^-?[0-9]{1,19}-[0-9]{1,10}-[0-9]{1,19}-[0-9]{1,10}$"),
]
TraceCursor = Annotated[
    str, Meta(max_length=90), _examples(pattern="^-?[0-9]{1,18}-[0-9a-f]{0,64}$")
]
Limit = Annotated[int, Meta(ge=1, le=1000)]
Duration = Annotated[float, Meta(ge=0, le=DURATION_MS_MAX, examples=[250])]
Fraction = Annotated[float, Meta(ge=0, le=1, examples=[0.99])]
Positive = Annotated[int, Meta(ge=1, le=2**53)]

# Parameters of several endpoints.
_SINCE = "Start of the time range, inclusive: RFC 3339 with a zone, or an age: 90s, 15m, 6h, 7d."
_FIELD = "a column, an attribute, or `resource.` and a resource attribute"
Since = Annotated[Timestamp | None, doc(_SINCE)]
RequiredSince = Annotated[Timestamp, doc(_SINCE)]
Until = Annotated[Timestamp | None, doc("End of the time range, exclusive; written like `since`.")]
Filters = Annotated[Pairs, doc(f"name=value, where name is {_FIELD}.")]
Excludes = Annotated[Pairs, doc("Rows to leave out; written like `filter`.")]
LogSearch = Annotated[Text | None, doc("Words in the body; only for logs.")]
MinSeverity = Annotated[Severity | None, doc("Minimum severity; only for logs.")]
SearchQuery = Annotated[
    Text | None,
    doc("Search query: words, field:value, field:>5, AND, OR, NOT."),
]
LogOrder = Annotated[Literal["newest", "oldest"], doc("Which records come first.")]
FacetNames = Annotated[Names, doc(f"Name of {_FIELD}; repeat for several.")]
FacetLimit = Annotated[Limit, doc("Maximum number of values per field.")]
StepWidth = Annotated[Step, doc("Step width, such as 10s, 5m, 1h.")]
