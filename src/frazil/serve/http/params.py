"""Types of the values in a request: what they look like, for the description and its readers.

What a pattern says here is checked where the value is read, with better words than a pattern has.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

NAME_MAX = 1024
"""Letters of a name, such as that of a service or of an attribute."""
TEXT_MAX = 4096
"""Letters of what is looked for."""
DURATION_MS_MAX = 9e12
"""In nanoseconds, that is about all that 64 bits hold."""

_STRETCH = "[0-9]{1,9}[smhdw]"


def _shown(*examples: Any, **schema: Any) -> msgspec.Meta:
    return msgspec.Meta(examples=list(examples) or None, extra_json_schema=schema)


Name = Annotated[str, msgspec.Meta(max_length=NAME_MAX)]
Text = Annotated[str, msgspec.Meta(max_length=TEXT_MAX)]
Moment = Annotated[
    str,
    msgspec.Meta(max_length=64),
    _shown(
        "15m",
        "2026-11-16T10:00:00Z",
        anyOf=[{"format": "date-time"}, {"pattern": f"^{_STRETCH}$"}],
    ),
]
Stretch = Annotated[str, msgspec.Meta(max_length=10), _shown("5m", pattern=f"^{_STRETCH}$")]
Pair = Annotated[
    str, msgspec.Meta(max_length=TEXT_MAX), _shown("service_name=checkout", pattern="^[^=]+=")
]
Pairs = Annotated[tuple[Pair, ...], msgspec.Meta(max_length=32)]
Names = Annotated[tuple[Name, ...], msgspec.Meta(max_length=32)]
Groups = Annotated[tuple[Name, ...], msgspec.Meta(max_length=8)]
Severity = Annotated[str, _shown("WARN", enum=["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"])]
TraceId = Annotated[
    str, msgspec.Meta(pattern="^[0-9a-fA-F]{32}$"), _shown("0af7651916cd43dd8448eb211c80319c")
]
SpanId = Annotated[str, msgspec.Meta(pattern="^[0-9a-fA-F]{16}$"), _shown("b7ad6b7169203331")]
LogCursor = Annotated[
    str,
    msgspec.Meta(max_length=70),
    _shown(pattern="^-?[0-9]{1,19}-[0-9]{1,10}-[0-9]{1,19}-[0-9]{1,10}$"),
]
TraceCursor = Annotated[
    str, msgspec.Meta(max_length=90), _shown(pattern="^-?[0-9]{1,18}-[0-9a-f]{0,64}$")
]
Limit = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Duration = Annotated[float, msgspec.Meta(ge=0, le=DURATION_MS_MAX, examples=[250])]
Share = Annotated[float, msgspec.Meta(ge=0, le=1, examples=[0.99])]
Positive = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
