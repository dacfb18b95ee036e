"""The text of a function while it is written, and how it becomes that function."""

from __future__ import annotations

import linecache
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Any

SPOKEN = {"?": "o", "16s": "u"}
"""Letters in names for formats that are no letters."""


class FunctionText:
    """Python text that grows line by line, and what its names stand for."""

    def __init__(self) -> None:
        self.names: dict[str, object] = {}
        """Globals of the text: classes, helpers, compiled formats."""
        self._lines: list[str] = []
        self._depth = 0
        self._count = 0

    def add(self, *lines: str) -> None:
        """Add lines at the current depth."""
        self._lines += ["    " * self._depth + line for line in lines]

    @contextmanager
    def block(self, line: str) -> Iterator[None]:
        """Add a line with others indented below it."""
        self.add(line)
        self._depth += 1
        before = len(self._lines)
        yield
        if len(self._lines) == before:
            self.add("pass")
        self._depth -= 1

    def variable(self, hint: str) -> str:
        """Return a name that is used once."""
        self._count += 1
        return f"{hint}_{self._count}"

    def use(self, name: str, value: object) -> str:
        """Give a name to something the text uses, and return the name."""
        assert self.names.setdefault(name, value) is value, f"{name} has two meanings"
        return name

    def format(self, method: str, formats: list[str]) -> tuple[str, int]:
        """Return the name of `pack` or `unpack_from` for fields of a fixed size, and their size."""
        compiled = struct.Struct(f">{''.join(formats)}")
        runs = [(char, len(list(run))) for char, run in groupby(formats)]
        parts = [f"{SPOKEN.get(char, char)}{count if count > 1 else ''}" for char, count in runs]
        name = f"{method}_{''.join(parts)}"
        self.names.setdefault(name, getattr(compiled, method))
        return name, compiled.size

    @property
    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def build(self, function: str, title: str) -> Callable[..., Any]:
        """Compile the text and return one of its functions. Tracebacks show the text."""
        file = f"<{title}>"
        linecache.cache[file] = (len(self.text), None, self.text.splitlines(keepends=True), file)
        exec(compile(self.text, file, "exec"), self.names)
        built: Callable[..., Any] = self.names[function]  # type: ignore[assignment]
        return built
