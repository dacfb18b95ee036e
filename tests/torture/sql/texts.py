"""Hostile SQL texts, generated from a seed: every function of DataFusion with extreme arguments,
every clause nested, long and wide, and texts that are no SQL at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random

from frazil.query.functions.register import SingleQueryContext
from frazil.query.plan.session import open_session

EXTREMES = (
    *("NULL", "0", "-1", "9223372036854775807", "-9223372036854775808", "1e308", "-1e308"),
    *("'NaN'::double", "'inf'::double", "2000000000", "''", "'x'", "body", "_offset", "time"),
    *("attributes", "repeat('x', 1000000)", "'\\uffff\\u0000'", "'%_%_%_%'", "'(a+)+$'"),
    *("'(.{1,1000}){1,1000}'", "make_array(1)", "make_array()", "[[[[1]]]]", "now()", "true"),
    *("INTERVAL '9999999 years'", "DATE '0001-01-01'", "TIMESTAMP '9999-12-31'", "X'ff'"),
    *("'$.a.b'", "'1 day'", "'UTC'", "named_struct('a', 1)", "map(['a'], [1])", "time_unix_nano"),
    *("arrow_cast(NULL, 'FixedSizeBinary(2000000000)')", "'😀' || chr(1114111)", "random()"),
    "arrow_cast(NULL, 'FixedSizeList(2000000000, Int64)')",
    "CAST(99999999999999999999999999999999999999 AS DECIMAL(38, 0))",
)
WRAPS: dict[str, tuple[str, str, str]] = {
    "parentheses": ("(", "1", ")"),
    "minus": ("- ", "1", ""),
    "not": ("NOT ", "true", ""),
    "case": ("CASE WHEN true THEN ", "1", " END"),
    "cast": ("CAST(", "1", " AS BIGINT)"),
    "array": ("[", "1", "]"),
    "upper": ("upper(", "body", ")"),
    "coalesce": ("coalesce(NULL, ", "body", ")"),
    "subquery": ("(SELECT ", "1", ")"),
    "interval": ("INTERVAL ", "'1 day'", ""),
    "exists": ("EXISTS (SELECT ", "1", ")"),
    "like": ("body LIKE ", "'x'", ""),
}
REPEATS: dict[str, tuple[str, str, str]] = {
    "xor": ("SELECT ", "true XOR ", "true"),
    "or": ("SELECT count(*) FROM logs WHERE ", "_offset = {n} OR ", "false"),
    "and": ("SELECT count(*) FROM logs WHERE ", "body <> '{n}' AND ", "true"),
    "in": ("SELECT count(*) FROM logs WHERE body IN (", "'{n}', ", "'z')"),
    "columns": ("SELECT ", "body AS c{n}, ", "1 FROM logs"),
    "reverse": ("SELECT ", "reverse(substr(body, {n} % 90)), ", "1 FROM logs"),
    "concatenate": ("SELECT length(", "body || ", "body) FROM logs"),
    "plus": ("SELECT ", "1 + ", "1"),
    "union": ("", "SELECT body FROM logs UNION ALL ", "SELECT 'x'"),
    "intersect": ("", "SELECT body FROM logs INTERSECT ", "SELECT 'x'"),
    "joins": ("SELECT count(*) FROM logs", " CROSS JOIN logs l{n}", ""),
    "with": ("WITH a AS (SELECT 1 AS x)", ", a{n} AS (SELECT x + 1 AS x FROM a)", " SELECT 1"),
    "when": ("SELECT CASE _offset ", "WHEN {n} THEN 'x' ", "END FROM logs"),
    "windows": ("SELECT ", "sum(_offset) OVER (PARTITION BY body ORDER BY {n}), ", "1 FROM logs"),
    "explain": ("", "EXPLAIN ", "SELECT 1"),
    "values": ("SELECT count(*) FROM (VALUES ", "({n}), ", "(1)) v"),
    "cube": ("SELECT count(*) FROM logs GROUP BY CUBE (", "(_offset + {n}), ", "body)"),
    "order": ("SELECT * FROM logs ORDER BY ", "body || '{n}', ", "1"),
    "comments": ("SELECT 1 ", "/* {n} ", ""),
    "semicolons": ("SELECT 1", ";", ""),
    "matches": ("SELECT count(*) FROM logs WHERE matches(body, '", "a{n} OR ", "b')"),
}
COUNTS = (3, 30, 300, 3_000, 7_000, 20_000)
GREEDY = (
    "SELECT repeat('x', {big})",
    "SELECT length(repeat(body, {big})) FROM logs",
    "SELECT * FROM generate_series(1, {big})",
    "SELECT sum(value) FROM generate_series(1, {big}000)",
    "SELECT array_agg(a.body || b.body) FROM logs a, logs b, logs c",
    "SELECT count(*) FROM logs a, logs b, logs c, logs d WHERE a._offset + b._offset = d._offset",
    "SELECT array_repeat(1, {big})",
    "SELECT lpad(body, 2000000000, 'x') FROM logs",
    "SELECT string_agg(body, repeat('x', 100000)) FROM logs",
    "WITH RECURSIVE n AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n",
    "WITH RECURSIVE t AS (SELECT 'x' AS x UNION ALL SELECT x || x FROM t) SELECT * FROM t",
    "SELECT count(DISTINCT a.body || b.body || random()::varchar) FROM logs a, logs b",
    "SELECT * FROM logs a JOIN logs b ON true ORDER BY a.body || b.body",
    "SELECT regexp_replace(repeat(body, 1000), '(.*)(.*)(.*)', repeat('x', 1000), 'g') FROM logs",
    "SELECT range(0, {big})",
    "SELECT unnest(range(0, {big}))",
    "SELECT flatten(array_repeat(array_repeat(1, 100000), 100000))",
    "SELECT approx_percentile_cont(_offset, 0.5, {big}) FROM logs",
    "SELECT to_char(time, repeat('%Y', 1000000)) FROM logs",
    "SELECT levenshtein(repeat(body, 1000), repeat(reverse(body), 1000)) FROM logs",
    "SELECT power(CAST(9 AS DECIMAL(38, 0)), {big})",
    "SELECT factorial(_offset) FROM logs",
)
SIGNS = "'\"`()[]{};,.*+-/%<>=!|&^~@#$?:\\ \t\n\0\u200b\ufeff\u202e😀é"
WORDS = re.findall(
    r"\S+",
    "SELECT FROM WHERE GROUP BY ORDER LIMIT JOIN ON AS WITH RECURSIVE UNION ALL EXCEPT CASE WHEN "
    "THEN ELSE END CAST INTERVAL EXPLAIN ANALYZE VERBOSE OVER PARTITION ROWS BETWEEN UNBOUNDED "
    "PRECEDING LATERAL UNNEST VALUES TABLE DESCRIBE SHOW COLUMNS FOR SYSTEM_TIME OF logs spans "
    "body time 1 'x' NULL * ( ) , count(*) attributes['k'] IN EXISTS NOT LIKE ESCAPE SIMILAR TO",
)


def function_names() -> list[str]:
    """Return every function that a text can call."""
    session = open_session(1 << 20, SingleQueryContext(0))
    return sorted({*session.udfs(), *session.udafs(), *session.udwfs()})


def called(chance: Random, functions: list[str]) -> str:
    """A function with extreme arguments."""
    name = chance.choice(functions)
    arguments = ", ".join(chance.choices(EXTREMES, k=chance.choice((0, 1, 1, 2, 2, 3, 3, 4, 9))))
    over = chance.choice(("", "", "", " OVER ()", " FILTER (WHERE true)"))
    return f"SELECT {name}({arguments}){over} FROM logs{chance.choice(('', ' LIMIT 5'))}"


def nested(chance: Random, _: list[str]) -> str:
    """An expression inside itself, thousands of times."""
    begin, middle, end = WRAPS[chance.choice(sorted(WRAPS))]
    count = chance.choice(COUNTS)
    return f"SELECT {begin * count}{middle}{end * count} FROM logs"


def repeated(chance: Random, _: list[str]) -> str:
    """A clause that goes on and on."""
    begin, part, end = REPEATS[chance.choice(sorted(REPEATS))]
    count = chance.choice(COUNTS)
    return begin + "".join(part.replace("{n}", str(n)) for n in range(count)) + end


def greedy(chance: Random, _: list[str]) -> str:
    """A short text that wants all time or memory."""
    return chance.choice(GREEDY).replace("{big}", str(chance.choice((10**6, 10**9, 2**31, 10**12))))


def garbled(chance: Random, _: list[str]) -> str:
    """Words and signs in any order."""
    words = [
        chance.choice(WORDS) if chance.random() < 0.7 else chance.choice(SIGNS)
        for _ in range(chance.choice((5, 50, 500)))
    ]
    return chance.choice((" ", "")).join(words)


FAMILIES: dict[str, Callable[[Random, list[str]], str]] = {
    "called": called,
    "nested": nested,
    "repeated": repeated,
    "greedy": greedy,
    "garbled": garbled,
}


def texts(seed: int, count: int) -> Iterator[tuple[str, str]]:
    """Yield families and texts. The same seed gives the same ones."""
    chance = Random(f"{seed} sql")
    functions = function_names()
    for number in range(count):
        family = sorted(FAMILIES)[number % len(FAMILIES)]
        yield family, FAMILIES[family](chance, functions)
