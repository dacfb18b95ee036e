"""Log patterns: records whose text differs only in its variable parts, with counts and a trend.

SQL masks words with digits in the first line of each body and counts equal results, so that every
record is counted and few distinct texts are left. These are clustered as Drain does (He et al.,
2017): texts of one service with the same first word and the same punctuation are one pattern if
most of their other words are equal; the words that differ become `<*>`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Unpack

from frazil.model import doc
from frazil.query.functions.word_split import words_of
from frazil.query.search.filters import Ask, bounded, micros_of, where
from frazil.query.search.severity import severity_of
from frazil.query.telemetry.logs import LogFilter, conditions_of

LIMIT_MAX = 1000
ROWS_MAX = 1_000_000
"""Records that are read; of more, an even sample."""
TEXTS_MAX = 20_000
"""Masked texts by service and step; rarer ones are not clustered."""
LEAF_MAX = 50
"""Patterns with the same punctuation and first word; more become one, with all other words
variable. It bounds how many pairs are compared."""
CHARS_MAX = 300
"""Characters of a first line."""
PHRASES_MAX = 8
SIMILARITY_MIN = 0.6
"""Share of equal words, variable ones not counted as equal."""
VARIABLE = "<*>"

_MASKED = "[A-Za-z0-9_.-]*[0-9][A-Za-z0-9_.-]*"
"""Regular expression of a word with a digit: a number, an id, an address."""
_PART = re.compile(r"<\*>|[^\s\"'{}\[\](),:;=|]+|.", re.DOTALL)
_IS_WORD = re.compile(r"<\*>|[^\s\"'{}\[\](),:;=|]{2,}|\w")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPattern:
    """Records of one service with the same text but for its variable parts."""

    pattern: Annotated[str, doc("First line of the body; variable parts are `<*>`.")]
    service: str
    severity: Annotated[str, doc("Highest severity of its records.")]
    count: int
    first_seen: datetime.datetime
    last_seen: datetime.datetime
    trend: Annotated[dict[str, int], doc("Start of a step -> records; empty steps are omitted.")]
    query: Annotated[str, doc("Query for the search box that finds these records.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternsAnswer:
    """Patterns of log records, the most frequent first."""

    patterns: list[LogPattern]
    step_s: float
    pattern_count: Annotated[int, doc("Patterns that were found, including those not listed.")]
    row_count: Annotated[int, doc("Records that match.")]
    sampled_every: Annotated[int, doc("1: all records were read. n: one of n; counts are times n.")]


@dataclass(slots=True)
class LineCluster:
    """Lines that are one pattern, while they are clustered."""

    parts: list[str]
    severity_number: int
    first_seen: datetime.datetime
    last_seen: datetime.datetime
    count: int = 0
    trend: dict[Any, int] = field(default_factory=dict)
    """Step -> records."""


def log_patterns(
    ask: Ask, step: datetime.timedelta, *, limit: int = 100, **which: Unpack[LogFilter]
) -> PatternsAnswer:
    """Cluster log records by their text. Steps are aligned to 1970."""
    limit = bounded(limit, "limit", LIMIT_MAX)
    conditions = conditions_of(**which)
    counted = ask(f"SELECT count(*) AS n FROM logs {where(conditions)}")
    row_count = int(counted["n"][0].as_py())
    every = max(1, -(-row_count // ROWS_MAX))
    if every > 1:
        conditions.append(one_in(every))
    rows = masked_lines(ask, step, conditions)
    found = [
        _pattern(service, cluster, every)
        for service, clusters in cluster_lines(rows).items()
        for cluster in clusters
    ]
    found.sort(key=lambda one: (-one.count, one.service, one.pattern))
    return PatternsAnswer(
        patterns=found[:limit],
        step_s=step.total_seconds(),
        pattern_count=len(found),
        row_count=row_count,
        sampled_every=every,
    )


def one_in(every: int) -> str:
    """SQL of an even sample of rows."""
    # Requests differ in `_offset`, records of one request in `_row`.
    return f"(_offset * 31 + _row) % {every} = 0"


def masked_lines(
    ask: Ask, step: datetime.timedelta, conditions: Sequence[str]
) -> list[dict[str, Any]]:
    """Count the first lines of bodies by service, masked text and step, most frequent first."""
    # `substr` cuts before the regular expression reads.
    line = f"split_part(substr(coalesce(body, event_name, ''), 1, {CHARS_MAX}), chr(10), 1)"
    rows = ask(
        f"SELECT service_name AS service, regexp_replace({line}, '{_MASKED}', '{VARIABLE}', 'g') "
        f"AS line, date_bin(INTERVAL '{micros_of(step)} microseconds', time) AS step, "
        "count(*) AS count, max(severity_number) AS severity_number, min(time) AS first_seen, "
        f"max(time) AS last_seen FROM logs {where(conditions)} GROUP BY 1, 2, 3 "
        f"ORDER BY count DESC, service, line, step LIMIT {TEXTS_MAX}"
    )
    return list(rows.to_pylist())


def cluster_lines(rows: Sequence[dict[str, Any]]) -> dict[str, list[LineCluster]]:
    """Cluster counted lines by service; the most frequent lines come first and decide."""
    # Lines with the same punctuation and first word: only these are compared.
    leaves: dict[tuple[str, tuple[str, ...], str], list[LineCluster]] = {}
    exact: dict[tuple[str, str], LineCluster] = {}
    by_service: dict[str, list[LineCluster]] = {}
    for row in rows:
        key = (row["service"], row["line"])
        cluster = exact.get(key)
        if cluster is None:
            parts = _PART.findall(row["line"].strip())
            words = [part for part in parts if _IS_WORD.match(part)]
            signs = tuple("" if _IS_WORD.match(part) else part for part in parts)
            first = words[0] if words else ""
            leaf = leaves.setdefault((row["service"], signs, first), [])
            cluster = _nearest(leaf, parts)
            if cluster is None and len(leaf) == LEAF_MAX:
                cluster = leaf[-1]
                cluster.parts = _only_first_word(cluster.parts)
            if cluster is None:
                cluster = LineCluster(
                    parts, row["severity_number"], row["first_seen"], row["last_seen"]
                )
                leaf.append(cluster)
                by_service.setdefault(row["service"], []).append(cluster)
            exact[key] = cluster
        cluster.count += row["count"]
        cluster.severity_number = max(cluster.severity_number, row["severity_number"])
        cluster.first_seen = min(cluster.first_seen, row["first_seen"])
        cluster.last_seen = max(cluster.last_seen, row["last_seen"])
        cluster.trend[row["step"]] = cluster.trend.get(row["step"], 0) + row["count"]
    return by_service


def _nearest(leaf: list[LineCluster], parts: list[str]) -> LineCluster | None:
    """Return the cluster that is most similar, widened to hold this line; None if none is."""
    best, best_similarity = None, SIMILARITY_MIN
    for cluster in leaf:
        pairs = list(zip(cluster.parts, parts, strict=True))
        words = [(one, other) for one, other in pairs if _IS_WORD.match(one)]
        is_same = sum(one == other != VARIABLE for one, other in words)
        similarity = 1.0 if cluster.parts == parts else is_same / max(1, len(words))
        if similarity >= best_similarity:
            best, best_similarity = cluster, similarity
    if best is not None:
        best.parts = [
            one if one == other else VARIABLE for one, other in zip(best.parts, parts, strict=True)
        ]
    return best


def _only_first_word(parts: list[str]) -> list[str]:
    """Return a pattern with all words after the first variable."""
    words = [index for index, part in enumerate(parts) if _IS_WORD.match(part)]
    return [VARIABLE if index in words[1:] else part for index, part in enumerate(parts)]


def _pattern(service: str, cluster: LineCluster, every: int) -> LogPattern:
    pattern = "".join(cluster.parts)
    return LogPattern(
        pattern=pattern,
        service=service,
        severity=severity_of(cluster.severity_number),
        count=cluster.count * every,
        first_seen=cluster.first_seen,
        last_seen=cluster.last_seen,
        trend={
            step.isoformat().replace("+00:00", "Z"): count * every
            for step, count in sorted(cluster.trend.items())
        },
        query=query_of(service, pattern),
    )


def query_of(service: str, pattern: str) -> str:
    """Return a query for the search box: the service and the fixed words, phrase by phrase."""
    # The last word of a line that was cut may be half of one.
    fixed = pattern if len(pattern) < CHARS_MAX - len(VARIABLE) else pattern[: CHARS_MAX // 2]
    phrases = [" ".join(words_of(phrase)) for phrase in fixed.split(VARIABLE)]
    named = service.replace("\\", "\\\\").replace('"', '\\"')
    quoted = [f'"{phrase}"' for phrase in phrases if phrase][:PHRASES_MAX]
    return " ".join([f'service:"{named}"', *quoted])
