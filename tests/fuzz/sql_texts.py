"""SQL texts for the fuzzer: valid ones from docs and tests, grammar-made ones, and mutations.

corpus        every query in docs and in tests of the query room
grammar       random queries over the tables, mostly valid
mutation      bytes flipped; tokens deleted, repeated, swapped or replaced; texts spliced, cut,
              nested, or filled with odd characters
hostile       texts of `tests.torture.sql` and `tests.query.hostile`; few, because many of them use
              all of their time
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

from frazil.model.arrow import TABLES
from frazil.results import tokens
from tests.query import hostile
from tests.torture.sql.texts import EXTREMES, SIGNS, WORDS, WRAPS, called, function_names
from tests.torture.sql.texts import FAMILIES as HOSTILE_FAMILIES

ROOT = Path(__file__).parents[2]
TEXT_LENGTH_MAX = 1500
"""Longer texts of docs and tests are left out: they would only slow down the run."""
IS_QUERY = re.compile(r"\s*(SELECT|WITH|EXPLAIN|SHOW|DESCRIBE|VALUES|TABLE)\b", re.IGNORECASE)
HOSTILE = 0.0005
"""Share of hostile texts. Each may take all the time that a query has."""
GRAMMAR, CALLED = 0.25, 0.28
"""Cumulative shares of grammar-made texts and of functions with extreme arguments."""
UNTOUCHED = 0.2
"""Share of texts that are not mutated."""
EXPLAINED = 0.05
DEEP = 0.01
"""Share of nested mutations beyond the limit of the parser. It tries some of them in exponential
time, until the timeout."""
ODD: tuple[str, ...] = (
    *SIGNS,
    *(
        "\u0000",
        "\ud800",
        "\U0010ffff",
        "\u0301" * 20,
        "\u2028",
        "\u00a0",
        "\ufffd",
        "\U0001d4aeELECT",
    ),
    *("ß", "İ", "'" * 3, '"' * 3, "--", "/*", "*/", "$$", "\\", "::", "->>", "\r", "\x1b[2J"),
)


def corpus() -> list[str]:
    """Return the queries of docs and tests, each once."""
    found: dict[str, None] = {}
    for page in sorted(ROOT.glob("docs/*.md")):
        text = page.read_text(encoding="utf-8")
        found |= dict.fromkeys(re.findall(r"```sql\n(.*?)```", text, re.DOTALL))
        found |= dict.fromkeys(re.findall(r"frazil sql \"([^\"]*)\"", text))
    for module in sorted(ROOT.glob("tests/query/**/*.py")):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found[node.value] = None
    costly = {*hostile.GREEDY, *hostile.WICKED}
    return [
        text
        for text in found
        if IS_QUERY.match(text) and len(text) <= TEXT_LENGTH_MAX and text not in costly
    ]


class Grammar:
    """Queries over the real tables, with the real functions."""

    def __init__(self, rand: Random, functions: Sequence[str]) -> None:
        self._rand = rand
        self._functions = functions
        self._columns = {name: schema.names for name, schema in TABLES.items()}
        self._tables = sorted(self._columns)

    def query(self, depth: int = 0) -> str:
        rand = self._rand
        table = rand.choice(self._tables)
        columns = self._columns[table]
        items = [self._item(columns) for _ in range(rand.choice((1, 1, 2, 3, 5)))]
        parts = [
            self._with(depth),
            rand.choice(("SELECT ", "SELECT ", "SELECT ", "SELECT DISTINCT ")),
            ", ".join(items),
            f" FROM {self._source(table, depth)}",
        ]
        if rand.random() < 0.5:
            parts.append(f" WHERE {self._condition(columns, depth)}")
        if rand.random() < 0.25:
            parts.append(f" GROUP BY {rand.choice((rand.choice(columns), '1', 'ALL', '1, 2'))}")
            if rand.random() < 0.3:
                parts.append(f" HAVING count(*) > {rand.choice(EXTREMES)}")
        if rand.random() < 0.3:
            order = rand.choice(
                ("1", rand.choice(columns), "time DESC", "2 NULLS FIRST", "random()")
            )
            parts.append(f" ORDER BY {order}")
        if rand.random() < 0.6:
            parts.append(f" LIMIT {rand.choice(('0', '1', '5', '100', '5 OFFSET 3'))}")
        if depth < 2 and rand.random() < 0.08:
            parts.append(rand.choice((" UNION ALL ", " UNION ", " EXCEPT ", " INTERSECT ")))
            parts.append(self.query(depth + 1))
        return "".join(parts)

    def _with(self, depth: int) -> str:
        if depth or self._rand.random() > 0.08:
            return ""
        return f"WITH {self._rand.choice(('c', 'logs', 'spans'))} AS ({self.query(1)}) "

    def _source(self, table: str, depth: int) -> str:
        rand = self._rand
        chance = rand.random()
        if chance < 0.75 or depth > 1:
            return table
        if chance < 0.85:
            return f"({self.query(depth + 1)}) AS t"
        if chance < 0.92:
            join = rand.choice(("JOIN", "LEFT JOIN", "FULL JOIN", "CROSS JOIN", "LEFT SEMI JOIN"))
            on = "" if join == "CROSS JOIN" else " ON a._offset = b._offset"
            return f"{table} a {join} {rand.choice(self._tables)} b{on}"
        if chance < 0.96:
            return f"{table} FOR SYSTEM_TIME AS OF {rand.choice(EXTREMES)}"
        return f"{table}, LATERAL (SELECT {self._value(self._columns[table])}) l"

    def _item(self, columns: Sequence[str]) -> str:
        rand = self._rand
        value = self._value(columns)
        aggregate = rand.choice(("count", "sum", "min", "max", "avg", "array_agg", "median"))
        frame = rand.choice(("", "PARTITION BY service_name", "ORDER BY time ROWS 3 PRECEDING"))
        return rand.choice(
            (
                value,
                value,
                f"{aggregate}({value})",
                "count(*)",
                "*",
                f"{aggregate}({value}) OVER ({frame})",
                f"CASE WHEN {value} IS NULL THEN {self._value(columns)} ELSE {value} END AS x",
                f"CAST({value} AS {rand.choice(('BIGINT', 'VARCHAR', 'DOUBLE', 'TIMESTAMP'))})",
                f"attributes['{rand.choice(('http.method', 'k', ''))}']",
            )
        )

    def _value(self, columns: Sequence[str]) -> str:
        rand = self._rand
        one = rand.choice(columns) if rand.random() < 0.7 else rand.choice(EXTREMES)
        chance = rand.random()
        if chance < 0.6:
            return one
        if chance < 0.8:
            other = rand.choice(columns) if rand.random() < 0.5 else rand.choice(EXTREMES)
            return f"{one} {rand.choice(('+', '-', '*', '/', '%', '||', '&', '->'))} {other}"
        arguments = ", ".join((one, *rand.choices(EXTREMES, k=rand.choice((0, 0, 1, 2)))))
        return f"{rand.choice(self._functions)}({arguments})"

    def _condition(self, columns: Sequence[str], depth: int) -> str:
        rand = self._rand
        one = self._value(columns)
        if depth < 2 and rand.random() < 0.1:
            return f"{one} {rand.choice(('IN', '= ANY', 'NOT IN'))} ({self.query(depth + 1)})"
        simple = rand.choice(
            (
                f"{one} {rand.choice(('=', '<>', '<', '>=', 'IS DISTINCT FROM'))} "
                f"{rand.choice(EXTREMES)}",
                f"{one} LIKE '%{rand.choice(WORDS)}%'",
                f"{one} IS NOT NULL",
                f"{one} BETWEEN {rand.choice(EXTREMES)} AND {rand.choice(EXTREMES)}",
                f"{one} IN ({', '.join(rand.choices(EXTREMES, k=3))})",
                "time > now() - INTERVAL '1 hour'",
                f"matches(body, '{rand.choice(WORDS)}')",
                f"body ~ '{rand.choice(SIGNS)}{rand.choice(WORDS)}'",
            )
        )
        if rand.random() < 0.25:
            simple += f" {rand.choice(('AND', 'OR', 'AND NOT'))} {self._condition(columns, depth)}"
        return simple


class Mutator:
    """Changes texts. Token texts are joined again with the spaces that were between them."""

    def __init__(self, rand: Random, texts: Sequence[str]) -> None:
        self._rand = rand
        self._texts = texts
        self._pieces = [pieces_of(text) for text in texts]
        words = {piece for pieces in self._pieces for piece in pieces if not piece.isspace()}
        self._words = sorted(words)
        self._ways: tuple[Callable[[str], str], ...] = (
            self._flip,
            self._odd,
            self._cut,
            self._nest,
            self._delete,
            self._repeat,
            self._swap,
            self._replace,
            self._replace,
            self._splice,
        )

    def mutate(self, text: str) -> str:
        for _ in range(self._rand.choice((1, 1, 1, 2, 3, 8))):
            text = self._rand.choice(self._ways)(text)
        return text

    def _flip(self, text: str) -> str:
        """Change some bytes. What is no UTF-8 afterwards is replaced."""
        data = bytearray(text.encode("utf-8", "replace"))
        for _ in range(self._rand.choice((1, 1, 2, 5))):
            if data:
                data[self._rand.randrange(len(data))] ^= 1 << self._rand.randrange(8)
        return data.decode("utf-8", "replace")

    def _odd(self, text: str) -> str:
        at = self._rand.randint(0, len(text))
        return text[:at] + self._rand.choice(ODD) + text[at:]

    def _cut(self, text: str) -> str:
        at = self._rand.randint(0, len(text))
        return text[:at] if self._rand.random() < 0.7 else text[at:]

    def _nest(self, text: str) -> str:
        """Put a token into an expression, many times."""
        pieces = pieces_of(text)
        begin, _, end = WRAPS[self._rand.choice(sorted(WRAPS))]
        is_deep = self._rand.random() < DEEP
        count = self._rand.choice((40, 60, 3_000, 20_000) if is_deep else (1, 2, 3, 5))
        if pieces:
            at = self._rand.randrange(len(pieces))
            pieces[at] = f"{begin * count}{pieces[at]}{end * count}"
        return "".join(pieces)

    def _delete(self, text: str) -> str:
        pieces = pieces_of(text)
        if pieces:
            at = self._rand.randrange(len(pieces))
            del pieces[at : at + self._rand.choice((1, 1, 2, 5))]
        return "".join(pieces)

    def _repeat(self, text: str) -> str:
        pieces = pieces_of(text)
        if pieces:
            at = self._rand.randrange(len(pieces))
            end = at + self._rand.choice((1, 2, 4, 8))
            pieces[at:end] = pieces[at:end] * self._rand.choice((2, 2, 3, 10, 100))
        return "".join(pieces)

    def _swap(self, text: str) -> str:
        pieces = pieces_of(text)
        if pieces:
            one, other = (self._rand.randrange(len(pieces)) for _ in range(2))
            pieces[one], pieces[other] = pieces[other], pieces[one]
        return "".join(pieces)

    def _replace(self, text: str) -> str:
        pieces = pieces_of(text)
        if pieces:
            at = self._rand.randrange(len(pieces))
            sources: tuple[Sequence[str], ...] = (self._words, EXTREMES, WORDS)
            pieces[at] = self._rand.choice(self._rand.choice(sources))
        return "".join(pieces)

    def _splice(self, text: str) -> str:
        """The begin of one text and the end of another."""
        one, other = pieces_of(text), self._rand.choice(self._pieces)
        return "".join(one[: self._rand.randint(0, len(one))]) + "".join(
            other[self._rand.randint(0, len(other)) :]
        )


def pieces_of(text: str) -> list[str]:
    """Return the tokens of a text and what is between them."""
    pieces, end = [], 0
    for token in tokens(text):
        if token.begin > end:
            pieces.append(text[end : token.begin])
        pieces.append(token.text)
        end = token.end
    if end < len(text):
        pieces.append(text[end:])
    return pieces


def fuzzed_texts(count: int, seed: int, texts: Sequence[str]) -> Iterator[str]:
    """Yield `count` texts. Same seed, same texts."""
    rand = Random(f"{seed} sql texts")
    functions = function_names()
    grammar, mutator = Grammar(rand, functions), Mutator(rand, texts)
    hostile_texts = (*hostile.GREEDY, *hostile.WICKED)
    for _ in range(count):
        chance = rand.random()
        if chance < HOSTILE:
            family = HOSTILE_FAMILIES[rand.choice(sorted(HOSTILE_FAMILIES))]
            text = rand.choice((family(rand, functions), rand.choice(hostile_texts)))
        elif chance < GRAMMAR:
            text = grammar.query()
        elif chance < CALLED:
            text = called(rand, functions)
        else:
            text = rand.choice(texts)
        if rand.random() > UNTOUCHED:
            text = mutator.mutate(text)
        yield f"EXPLAIN {text}" if rand.random() < EXPLAINED else text
