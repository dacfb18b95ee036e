"""Parses TraceQL by recursive descent.

Of the operators between spansets, structural ones bind tightest, then &&, then ||. In a field
expression: ^, then * / %, then + -, then comparisons, then &&, then ||.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar, get_args

from frazil.errors import Malformed
from frazil.languages.traceql.fields import INTRINSICS
from frazil.languages.traceql.lexer import Lexeme, attribute_of, lexemes_of, nanos_of, text_of
from frazil.languages.traceql.nodes import (
    CoalesceStage,
    CompareStage,
    FieldExpression,
    FieldLiteral,
    FieldOperation,
    GroupStage,
    MetricsStage,
    NamedValue,
    PipelineStage,
    RankStage,
    SampleFilter,
    ScalarExpression,
    ScalarFilter,
    ScalarOperation,
    Scope,
    SelectStage,
    SpanAttribute,
    SpanIntrinsic,
    SpansetAggregate,
    SpansetExpression,
    SpansetFilter,
    SpansetJoin,
    SpansetPipeline,
    StructuralJoin,
    StructuralSign,
    TraceqlQuery,
    UnaryOperation,
)

DEPTH_MAX = 50
"""Nesting of parentheses."""
LEXEMES_MAX = 400
"""Names, values and signs of a query; this bounds how deeply operators nest, too."""
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
REGEXES = ("=~", "!~")
STATUSES = ("ok", "error", "unset")
KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")
AGGREGATES = ("count", "avg", "min", "max", "sum")
COUNTING = ("rate", "count_over_time")
OVER_TIME = ("min", "max", "avg", "sum", "quantile", "histogram")
MEASURING = tuple(f"{name}_over_time" for name in OVER_TIME)
METRICS = (*COUNTING, *MEASURING, "compare")
HINTS = ("most_recent", "sample", "span_sample", "trace_sample", "exemplars", "skip_asc")
TOP_DEFAULT = 10
"""Values per attribute of compare()."""
TOP_MAX = 100
RANK_MAX = 1000

T = TypeVar("T")


def parse_traceql(query: str) -> TraceqlQuery:
    """Parse a query. `Malformed` says what is wrong and where."""
    return _Parser(query).query()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._lexemes = list(lexemes_of(text))
        if len(self._lexemes) > LEXEMES_MAX:
            raise Malformed(f"the query has more than {LEXEMES_MAX} parts; use fewer conditions")
        self._place = 0
        self._depth = 0

    def query(self) -> TraceqlQuery:
        pipeline = self._pipeline()
        metrics = self._metrics() if self._is_metrics() else None
        after: list[RankStage | SampleFilter] = []
        while metrics is not None and (stage := self._after_metrics()) is not None:
            after.append(stage)
        if self._skip("with"):
            self._hints()
        if self._next.kind != "end":
            self._refuse(self._next, "is not expected here")
        return TraceqlQuery(pipeline, metrics, tuple(after))

    # Lexemes

    @property
    def _next(self) -> Lexeme:
        return self._lexemes[self._place]

    def _take(self) -> Lexeme:
        lexeme = self._next
        self._place += lexeme.kind != "end"
        return lexeme

    def _sees(self, *texts: str) -> bool:
        return self._next.kind in ("sign", "word") and self._next.text in texts

    def _skip(self, text: str) -> bool:
        is_next = self._sees(text)
        self._place += is_next
        return is_next

    def _expect(self, text: str) -> None:
        if not self._skip(text):
            self._refuse(self._next, f"is not expected here; write {text}")

    def _refuse(self, lexeme: Lexeme, why: str) -> NoReturn:
        shown = repr(lexeme.text[:40]) if lexeme.text else "the end of the query"
        raise Malformed(
            f"{shown} {why} (character {lexeme.begin + 1} of the query)",
            begin=lexeme.begin,
            end=lexeme.end,
        )

    def _nested(self, parse: Callable[[], T]) -> T:
        """Parse what is in parentheses, up to the closing one."""
        self._depth += 1
        if self._depth > DEPTH_MAX:
            self._refuse(self._next, f"is nested too deeply; use at most {DEPTH_MAX} levels")
        inside = parse()
        self._expect(")")
        self._depth -= 1
        return inside

    def _list(self, parse: Callable[[], T]) -> tuple[T, ...]:
        """Parse a list in parentheses, whose first one is still to come."""
        self._expect("(")
        items = [parse()]
        while self._skip(","):
            items.append(parse())
        self._expect(")")
        return tuple(items)

    def _written(self, begin: int) -> str:
        """Return the text from a lexeme to the last one that was taken."""
        last = self._lexemes[self._place - 1]
        return self._text[self._lexemes[begin].begin : last.end]

    # Pipelines

    def _pipeline(self) -> SpansetPipeline:
        starts_with_number = self._next.text in AGGREGATES
        stages: list[PipelineStage] = [
            SpansetFilter(None) if starts_with_number else self._spansets()
        ]
        if starts_with_number:
            stages.append(self._scalar_filter())
        while self._sees("|") and not self._is_metrics():
            self._take()
            stages.append(self._stage())
        return SpansetPipeline(tuple(stages))

    def _is_metrics(self) -> bool:
        """Return whether the next stage makes series."""
        after = self._lexemes[min(self._place + 1, len(self._lexemes) - 1)]
        return self._sees("|") and after.kind == "word" and after.text in METRICS

    def _stage(self) -> PipelineStage:
        if self._sees("by"):
            self._take()
            written = self._list(self._field_and_text)
            return GroupStage(
                tuple(field for field, _ in written), tuple(text for _, text in written)
            )
        if self._skip("select"):
            return SelectStage(self._list(self._named))
        if self._skip("coalesce"):
            self._expect("(")
            self._expect(")")
            return CoalesceStage()
        if self._sees("topk", "bottomk"):
            self._refuse(self._next, "needs series; write it after rate() or another metric")
        if self._sees("{"):
            return self._spansets()
        if self._sees("("):
            return self._parenthesis()
        return self._scalar_filter()

    def _parenthesis(self) -> PipelineStage:
        """Parse spansets or a scalar filter: what is in the parentheses tells them apart."""
        place, depth = self._place, self._depth
        while self._lexemes[place].text == "(":
            place += 1
        is_spanset = self._lexemes[place].text == "{"
        self._depth = depth
        return self._spansets() if is_spanset else self._scalar_filter()

    def _field_and_text(self) -> tuple[FieldExpression, str]:
        begin = self._place
        field = self._field()
        return field, self._written(begin)

    def _named(self) -> NamedValue:
        lexeme = self._next
        field = self._primary()
        if not isinstance(field, SpanAttribute | SpanIntrinsic):
            self._refuse(lexeme, "is not an attribute or an intrinsic of spans")
        return field

    def _spansets(self) -> SpansetExpression:
        left = self._all_spansets()
        while self._skip("||"):
            left = SpansetJoin("||", left, self._all_spansets())
        return left

    def _all_spansets(self) -> SpansetExpression:
        left = self._structural()
        while self._skip("&&"):
            left = SpansetJoin("&&", left, self._structural())
        return left

    def _structural(self) -> SpansetExpression:
        left = self._spanset()
        while self._next.kind == "sign" and self._next.text.lstrip("!&") in get_args(
            StructuralSign
        ):
            text = self._take().text
            sign: StructuralSign = text.lstrip("!&")  # type: ignore[assignment]  # one of them
            left = StructuralJoin(
                sign,
                left,
                self._spanset(),
                is_negated=text.startswith("!"),
                has_both=text.startswith("&"),
            )
        return left

    def _spanset(self) -> SpansetExpression:
        if self._skip("("):
            inside = self._nested(self._pipeline)
            return inside.stages[0] if _is_one_spanset(inside) else inside  # type: ignore[return-value]
        return self._filter()

    def _filter(self) -> SpansetFilter:
        if not self._skip("{"):
            self._refuse(self._next, "is not expected here; write a filter such as { … }")
        if self._skip("}"):
            return SpansetFilter(None)
        condition = self._field()
        self._expect("}")
        return SpansetFilter(condition)

    # Numbers of spansets

    def _scalar_filter(self) -> ScalarFilter:
        left = self._scalar()
        sign = self._take()
        if sign.text not in COMPARISONS:
            self._refuse(sign, "is not expected here; compare with a number, such as > 2")
        return ScalarFilter(sign.text, left, self._scalar())

    def _scalar(self) -> ScalarExpression:
        left = self._scalar_product()
        while self._sees("+", "-"):
            left = ScalarOperation(self._take().text, left, self._scalar_product())
        return left

    def _scalar_product(self) -> ScalarExpression:
        left = self._scalar_operand()
        while self._sees("*", "/", "%", "^"):
            left = ScalarOperation(self._take().text, left, self._scalar_operand())
        return left

    def _scalar_operand(self) -> ScalarExpression:
        if self._skip("("):
            return self._nested(self._scalar)
        if self._sees(*AGGREGATES):
            return self._aggregate()
        lexeme = self._next
        literal = self._primary() if not self._sees("-") else self._unary()
        if isinstance(literal, UnaryOperation) and isinstance(literal.operand, FieldLiteral):
            return ScalarOperation("-", FieldLiteral("number", 0), literal.operand)
        if not isinstance(literal, FieldLiteral) or literal.kind not in ("number", "duration"):
            self._refuse(lexeme, f"is not a number; use {', '.join(AGGREGATES)} or a constant")
        return literal

    def _aggregate(self) -> SpansetAggregate:
        begin = self._place
        function = self._take().text
        self._expect("(")
        field = None if function == "count" else self._field()
        self._expect(")")
        return SpansetAggregate(function, field, self._written(begin))  # type: ignore[arg-type]

    # Metrics

    def _metrics(self) -> MetricsStage | CompareStage:
        self._expect("|")
        function = self._take().text
        if function == "compare":
            return self._compare()
        self._expect("(")
        field = self._field() if function in MEASURING else None
        quantiles: list[float] = []
        while self._skip(","):
            quantiles.append(self._quantile(function))
        self._expect(")")
        if function == "quantile_over_time" and not quantiles:
            self._refuse(self._next, "is not expected here; name quantiles, such as , .9, .99)")
        by = self._list(self._field_and_text) if self._skip("by") else ()
        return MetricsStage(
            function,
            field,
            tuple(quantiles),
            tuple(field for field, _ in by),
            tuple(text for _, text in by),
        )

    def _quantile(self, function: str) -> float:
        lexeme = self._take()
        text = lexeme.text
        if function == "quantile_over_time" and _is_decimal(text) and 0 <= float(text) <= 1:
            return float(text)
        self._refuse(lexeme, "is not expected here; only quantile_over_time has numbers 0 to 1")

    def _compare(self) -> CompareStage:
        self._expect("(")
        selection = self._filter()
        numbers: list[int] = []
        while self._skip(","):
            numbers.append(self._whole())
        self._expect(")")
        if len(numbers) not in (0, 1, 3):
            self._refuse(self._next, "follows compare(…), which takes { … }, top, start, end")
        top = numbers[0] if numbers else TOP_DEFAULT
        begin, end = numbers[1:] or (None, None)
        return CompareStage(selection, min(max(top, 1), TOP_MAX), begin, end)

    def _after_metrics(self) -> RankStage | SampleFilter | None:
        if self._sees(*COMPARISONS):
            return self._sample_filter()
        if not self._skip("|"):
            return None
        if self._sees(*COMPARISONS):
            return self._sample_filter()
        lexeme = self._take()
        if lexeme.text not in ("topk", "bottomk"):
            self._refuse(lexeme, "is not supported after a metric; use topk(n) or bottomk(n)")
        self._expect("(")
        count = self._whole()
        self._expect(")")
        if not 1 <= count <= RANK_MAX:
            self._refuse(lexeme, f"takes a number from 1 to {RANK_MAX}")
        return RankStage(lexeme.text == "topk", count)

    def _sample_filter(self) -> SampleFilter:
        sign = self._take().text
        is_negative = self._skip("-")
        lexeme = self._take()
        if lexeme.kind == "duration":
            number = nanos_of(lexeme.text) / 1e9
        elif lexeme.kind == "number" or _is_decimal(lexeme.text):
            number = float(lexeme.text)
        else:
            self._refuse(lexeme, "is not a number")
        return SampleFilter(sign, -number if is_negative else number)

    def _whole(self) -> int:
        lexeme = self._take()
        if not (lexeme.text.isascii() and lexeme.text.isdigit()):
            self._refuse(lexeme, "is not a whole number")
        return int(lexeme.text)

    def _hints(self) -> None:
        """Skip hints, which say how Tempo may save work."""
        self._expect("(")
        while not self._skip(")"):
            name = self._take()
            if name.text not in HINTS:
                self._refuse(name, f"is not a known hint; known are {', '.join(HINTS)}")
            self._expect("=")
            self._take()
            self._skip(",")

    # Field expressions

    def _field(self) -> FieldExpression:
        left = self._conjunction()
        while self._skip("||"):
            left = FieldOperation("||", left, self._conjunction())
        return left

    def _conjunction(self) -> FieldExpression:
        left = self._comparison()
        while self._skip("&&"):
            left = FieldOperation("&&", left, self._comparison())
        return left

    def _comparison(self) -> FieldExpression:
        left = self._sum()
        if not self._sees(*COMPARISONS, *REGEXES):
            return left
        sign = self._take().text
        return FieldOperation(sign, left, self._sum())

    def _sum(self) -> FieldExpression:
        left = self._product()
        while self._sees("+", "-"):
            left = FieldOperation(self._take().text, left, self._product())
        return left

    def _product(self) -> FieldExpression:
        left = self._power()
        while self._sees("*", "/", "%"):
            left = FieldOperation(self._take().text, left, self._power())
        return left

    def _power(self) -> FieldExpression:
        left = self._unary()
        return FieldOperation("^", left, self._power()) if self._skip("^") else left

    def _unary(self) -> FieldExpression:
        signs: list[str] = []
        while self._sees("-", "!"):
            signs.append(self._take().text)
        if len(signs) > DEPTH_MAX:
            self._refuse(self._next, f"follows too many signs; use at most {DEPTH_MAX}")
        field = self._primary()
        for sign in reversed(signs):
            field = UnaryOperation("-" if sign == "-" else "!", field)
        return field

    def _primary(self) -> FieldExpression:
        lexeme = self._take()
        match lexeme.kind:
            case "sign" if lexeme.text == "(":
                return self._nested(self._field)
            case "text":
                return FieldLiteral("text", text_of(lexeme.text))
            case "duration":
                return FieldLiteral("duration", nanos_of(lexeme.text))
            case "number":
                is_whole = lexeme.text.isdigit()
                return FieldLiteral("number", (int if is_whole else float)(lexeme.text))
            case "attribute" if _is_decimal(lexeme.text):
                return FieldLiteral("number", float(lexeme.text))
            case "attribute":
                return self._attribute(lexeme)
            case "intrinsic" | "word":
                return self._word(lexeme)
        self._refuse(lexeme, "is not expected here; write an attribute, an intrinsic or a value")

    def _attribute(self, lexeme: Lexeme) -> SpanAttribute:
        scope, key = attribute_of(lexeme.text)
        if scope == "parent":
            self._refuse(lexeme, "is not supported; use { … } > { … } to name the parent span")
        known: Scope = scope  # type: ignore[assignment]  # the lexer knows no others
        return SpanAttribute(known, key)

    def _word(self, lexeme: Lexeme) -> FieldExpression:
        text = lexeme.text
        if text in ("true", "false"):
            return FieldLiteral("bool", text == "true")
        if text == "nil":
            return FieldLiteral("nil", None)
        if text in STATUSES:
            return FieldLiteral("status", text.upper())
        if text in KINDS:
            return FieldLiteral("kind", text.upper())
        if text in INTRINSICS:
            return SpanIntrinsic(INTRINSICS[text], text)
        self._refuse(lexeme, "is not known; attributes need a scope, such as span.name or .name")


def _is_one_spanset(pipeline: SpansetPipeline) -> bool:
    """Return whether parentheses hold no more than an operation on spansets."""
    kinds = (SpansetFilter, SpansetJoin, StructuralJoin, SpansetPipeline)
    return len(pipeline.stages) == 1 and isinstance(pipeline.stages[0], kinds)


def _is_decimal(text: str) -> bool:
    """Return whether a lexeme is a number such as 1, 0.9 or .9."""
    return text.replace(".", "", 1).isdigit() and text.isascii()
