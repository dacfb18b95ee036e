"""LogQL as a tree. The parser makes it; every part is a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MatchOperator = Literal["=", "!=", "=~", "!~"]
Comparison = Literal["==", "!=", ">", ">=", "<", "<="]
LineOperator = Literal["|=", "!=", "|~", "!~", "|>", "!>"]


@dataclass(frozen=True, slots=True)
class StreamMatcher:
    """A condition on one label as text. An absent label is the empty text."""

    name: str
    operator: MatchOperator
    value: str


@dataclass(frozen=True, slots=True)
class LineNeedle:
    """What a line filter looks for; an address or network if `is_ip`."""

    value: str
    is_ip: bool = False


@dataclass(frozen=True, slots=True)
class LineFilter:
    """FoundLines that have any of the needles, or none of them."""

    operator: LineOperator
    needles: tuple[LineNeedle, ...]


@dataclass(frozen=True, slots=True)
class Extraction:
    """A label and what it is taken from: a path in JSON, or a key."""

    label: str
    source: str


@dataclass(frozen=True, slots=True)
class JsonStage:
    extractions: tuple[Extraction, ...] = ()


@dataclass(frozen=True, slots=True)
class LogfmtStage:
    extractions: tuple[Extraction, ...] = ()
    is_strict: bool = False
    keeps_empty: bool = False


@dataclass(frozen=True, slots=True)
class PatternStage:
    pattern: str


@dataclass(frozen=True, slots=True)
class RegexpStage:
    pattern: str


@dataclass(frozen=True, slots=True)
class UnpackStage:
    pass


@dataclass(frozen=True, slots=True)
class DecolorizeStage:
    pass


@dataclass(frozen=True, slots=True)
class NumberTest:
    """A label compared with a number, a duration in seconds, or a size in bytes."""

    name: str
    operator: Comparison
    value: float
    unit: Literal["number", "duration", "bytes"]
    written: str


@dataclass(frozen=True, slots=True)
class IpTest:
    """A label that is an address in a range, or is not."""

    name: str
    operator: Literal["=", "!="]
    value: str


@dataclass(frozen=True, slots=True)
class LabelTests:
    """Tests joined by `and` or `or`."""

    joined_by: Literal["and", "or"]
    tests: tuple[LabelTest, ...]


LabelTest = StreamMatcher | NumberTest | IpTest | LabelTests


@dataclass(frozen=True, slots=True)
class LabelFilter:
    test: LabelTest


@dataclass(frozen=True, slots=True)
class LineFormat:
    template: str


@dataclass(frozen=True, slots=True)
class LabelAssignment:
    """A label that gets the text of a template, or replaces another label."""

    label: str
    value: str
    is_template: bool


@dataclass(frozen=True, slots=True)
class LabelFormat:
    assignments: tuple[LabelAssignment, ...]


@dataclass(frozen=True, slots=True)
class LabelChoice:
    """A label, or only if it matches."""

    name: str
    matcher: StreamMatcher | None = None


@dataclass(frozen=True, slots=True)
class DropStage:
    choices: tuple[LabelChoice, ...]


@dataclass(frozen=True, slots=True)
class KeepStage:
    choices: tuple[LabelChoice, ...]


ParserStage = JsonStage | LogfmtStage | PatternStage | RegexpStage | UnpackStage
Stage = (
    LineFilter
    | ParserStage
    | DecolorizeStage
    | LabelFilter
    | LineFormat
    | LabelFormat
    | DropStage
    | KeepStage
)


@dataclass(frozen=True, slots=True)
class LogSelection:
    """Streams, and what happens to each of their lines."""

    matchers: tuple[StreamMatcher, ...]
    stages: tuple[Stage, ...] = ()


@dataclass(frozen=True, slots=True)
class Unwrap:
    """A label whose value is the sample; `tests` apply to what is left."""

    label: str
    conversion: Literal["", "duration", "duration_seconds", "bytes"] = ""
    tests: tuple[LabelTest, ...] = ()


@dataclass(frozen=True, slots=True)
class LabelGrouping:
    """The labels that are kept, or if `is_without`, removed."""

    labels: tuple[str, ...]
    is_without: bool = False


@dataclass(frozen=True, slots=True)
class LogRange:
    operation: str
    selection: LogSelection
    range_ns: int
    offset_ns: int = 0
    unwrap: Unwrap | None = None
    parameter: float | None = None
    grouping: LabelGrouping | None = None


@dataclass(frozen=True, slots=True)
class LogqlAggregation:
    operation: str
    inner: MetricExpression
    grouping: LabelGrouping | None = None
    parameter: int | None = None


@dataclass(frozen=True, slots=True)
class LogqlMatching:
    """How series of two sides find each other."""

    labels: tuple[str, ...]
    is_on: bool
    group: Literal["", "left", "right"] = ""
    include: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LogqlBinary:
    operator: str
    left: MetricExpression
    right: MetricExpression
    is_bool: bool = False
    matching: LogqlMatching | None = None


@dataclass(frozen=True, slots=True)
class LogqlNumber:
    value: float


@dataclass(frozen=True, slots=True)
class LogqlVector:
    """`vector(n)`: one series without labels."""

    value: float


@dataclass(frozen=True, slots=True)
class LogqlReplacement:
    inner: MetricExpression
    target: str
    replacement: str
    source: str
    pattern: str


MetricExpression = (
    LogRange | LogqlAggregation | LogqlBinary | LogqlNumber | LogqlVector | LogqlReplacement
)
Expression = LogSelection | MetricExpression
