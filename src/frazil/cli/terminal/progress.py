"""ProgressLine: progress of long work, on standard error.

On a terminal it redraws one line: a bar, the rate and the time left. Elsewhere it prints a plain
line every few seconds. If quiet, it prints nothing.

    with ProgressLine("import", total=size, unit="B", clock=clock) as progress:
        progress.update(done, note="3 refused")
"""

from __future__ import annotations

import os
import sys
from typing import TextIO

from frazil.model import NS_PER_MS, Clock

DRAW_MS, LINE_MS = 100, 5_000
"""Interval between redraws on a terminal, and between lines elsewhere."""
BAR_CHARS = 24
WIDTH_DEFAULT = 80
PREFIXES = ("", "k", "M", "G", "T")
THOUSAND = 1000


class ProgressLine:
    """The progress of one piece of work. Owned by one thread."""

    def __init__(
        self,
        what: str,
        *,
        total: int | None = None,
        unit: str = "",
        clock: Clock,
        is_quiet: bool = False,
        stream: TextIO | None = None,
    ) -> None:
        """Without `total` there is no bar, only amount and rate; without `unit` only the note."""
        self._what = what
        self._total = total
        self._unit = unit
        self._clock = clock
        self._stream = sys.stderr if stream is None else stream
        self._is_quiet = is_quiet
        self._is_terminal = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._start_ns = clock.monotonic_ns()
        self._drawn_ns: int | None = None
        self._done = 0
        self._note = ""
        self._is_drawn = False

    def update(self, done: int, note: str = "", *, total: int | None = None) -> None:
        """Set the amount done. Redraws at most once per interval."""
        self._done, self._note = done, note
        self._total = self._total if total is None else total
        now_ns = self._clock.monotonic_ns()
        interval_ms = DRAW_MS if self._is_terminal else LINE_MS
        last_ns = self._drawn_ns if self._drawn_ns is not None else self._first_ns()
        if now_ns - last_ns >= interval_ms * NS_PER_MS:
            self._draw(now_ns)

    def say(self, line: str) -> None:
        """Print another line on standard error without breaking the bar."""
        if not self._is_quiet:
            self.wipe()
            print(line, file=self._stream, flush=True)

    def close(self) -> None:
        """Draw the final state, if anything was drawn."""
        if self._drawn_ns is not None:
            self._draw(self._clock.monotonic_ns())
            self._drawn_ns = None
            if self._is_drawn:
                print(file=self._stream, flush=True)
                self._is_drawn = False

    def _first_ns(self) -> int:
        """Return when the first interval began: a bar appears at once, a plain line later."""
        return 0 if self._is_terminal else self._start_ns

    def _draw(self, now_ns: int) -> None:
        self._drawn_ns = now_ns
        if self._is_quiet:
            return
        line = self.line(now_ns)
        if self._is_terminal:
            self.wipe()
            print(line[: self._width() - 1], end="", file=self._stream, flush=True)
            self._is_drawn = True
        else:
            print(line, file=self._stream, flush=True)

    def line(self, now_ns: int) -> str:
        """Return the text of the line."""
        parts = [self._what]
        seconds = max((now_ns - self._start_ns) / (1000 * NS_PER_MS), 1e-9)
        rate = self._done / seconds
        if self._total:
            share = min(1.0, self._done / self._total)
            filled = round(share * BAR_CHARS)
            bar = "█" * filled + "░" * (BAR_CHARS - filled)
            parts.append(f"{bar} {share:4.0%}" if self._is_terminal else f"{share:.0%}")
        if self._unit:
            of = f" of {amount(self._total, self._unit)}" if self._total else ""
            parts.append(f"{amount(self._done, self._unit)}{of}, {amount(rate, self._unit)}/s")
        if self._total and 0 < self._done < self._total and rate > 0:
            parts.append(f"{duration((self._total - self._done) / rate)} left")
        if self._note:
            parts.append(self._note)
        return "  ".join(parts)

    def wipe(self) -> None:
        """Erase the line from the terminal."""
        if self._is_drawn:
            print("\r\x1b[K", end="", file=self._stream, flush=True)
            self._is_drawn = False

    def _width(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or WIDTH_DEFAULT
        except OSError:
            return WIDTH_DEFAULT

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def amount(number: float, unit: str) -> str:
    """Return a number with prefix and unit: `1.2 MB`, `310 k rows`, `12 files`."""
    power = 0
    while abs(number) >= THOUSAND and power + 1 < len(PREFIXES):
        number /= THOUSAND
        power += 1
    digits = f"{number:.0f}" if power == 0 or number >= 100 else f"{number:.1f}"
    space = "" if unit == "B" or not PREFIXES[power] else " "
    return f"{digits} {PREFIXES[power]}{space}{unit}".rstrip()


def duration(seconds: float) -> str:
    """`8 s`, `3:05`, `1:02:09`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d}"
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
