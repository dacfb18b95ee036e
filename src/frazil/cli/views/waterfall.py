"""A trace as a waterfall: one line per span, with a bar for its time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from frazil.cli.terminal.cells import text_of
from frazil.cli.terminal.colors import BOLD, DIM, RED, Colors
from frazil.cli.terminal.severity import paint_severity, severity_word
from frazil.cli.terminal.text_width import padded, safe, shortened, width
from frazil.cli.terminal.units import brief_time, duration_text

if TYPE_CHECKING:
    from frazil.query import Line, LogRow

DURATION_COLUMNS = 8
BAR_MIN, LABEL_MIN = 10, 16
LABEL_SHARE = 0.55
"""Maximum share of the columns for tree, service and name."""
INDENT_MAX = 24
"""Maximum width of the tree; deeper spans show their depth as a number."""
EIGHTHS = " ▏▎▍▌▋▊▉█"
"""A column filled by 0 to 8 eighths."""


def waterfall_lines(
    trace_id: str,
    lines: Sequence[Line],
    logs: Sequence[LogRow],
    columns: int,
    paint: Colors,
    *,
    is_verbose: bool,
) -> Iterator[str]:
    """Yield the lines of a trace, none wider than `columns`."""
    total = max((line.offset_nano + line.duration_nano for line in lines), default=0)
    begin = min((line.span["time_unix_nano"] for line in lines), default=0)
    yield from _head(trace_id, lines, begin, total, columns, paint)
    trees = list(_trees(lines))
    labels = [
        f"{tree}{safe(line.span['service_name'])} {safe(line.span['name'])}"
        for tree, line in zip(trees, lines, strict=True)
    ]
    widest = max(map(width, labels), default=0)
    label_columns = max(LABEL_MIN, min(widest, int(columns * LABEL_SHARE)))
    bar_columns = max(BAR_MIN, columns - label_columns - DURATION_COLUMNS - 5)
    logs_of = _by_span(lines, logs)
    for tree, line, below in zip(trees, lines, _belows(trees), strict=True):
        label = _label(tree, line, label_columns, paint)
        bar = _bar(line, total, bar_columns)
        service = line.span["service_name"]
        bar = paint(bar, RED) if _is_error(line) else paint.service(bar, service)
        duration = padded(duration_text(line.duration_nano), DURATION_COLUMNS, is_right=True)
        mark = paint("✗", RED, BOLD) if _is_error(line) else " "
        yield f"{mark} {label} {bar} {duration}".rstrip()
        front = f"  {below}  "
        for text, codes in _notes(line, begin, is_verbose):
            yield paint(shortened(front + text, columns), *codes)
        for row in logs_of.get(line.span["span_id"], ()):
            yield _log(row, begin, front, columns, paint)
    if logs_of.get(None):
        yield paint("  logs outside these spans:", DIM)
        for row in logs_of[None]:
            yield _log(row, begin, "    ", columns, paint)


def _head(
    trace_id: str, lines: Sequence[Line], begin: int, total: int, columns: int, paint: Colors
) -> Iterator[str]:
    root = lines[0].span
    errors = sum(map(_is_error, lines))
    services = list(dict.fromkeys(line.span["service_name"] for line in lines))
    title = f"{safe(root['service_name'])}: {safe(root['name'])}"
    facts = [
        f"{brief_time(begin)}Z",
        duration_text(total),
        f"{len(lines):,} span{'' if len(lines) == 1 else 's'}",
        f"{len(services)} service{'' if len(services) == 1 else 's'}",
    ]
    yield paint(shortened(title, columns), BOLD)
    yield paint(f"trace {trace_id}", DIM)
    summary = shortened(", ".join(facts), columns)
    failed = f"{errors:,} failed"
    yield f"{summary}, {paint(failed, RED)}" if errors else summary
    yield ""


def _trees(lines: Sequence[Line]) -> Iterator[str]:
    """Yield the tree branches before each line."""
    is_last = _lasts(lines)
    open_at: list[bool] = []
    """For each depth above: whether a sibling follows."""
    for line, last in zip(lines, is_last, strict=True):
        del open_at[line.depth :]
        front = "".join("│ " if is_open else "  " for is_open in open_at[1:])
        branch = "" if line.depth == 0 else "└ " if last else "├ "
        tree = front + branch
        if len(tree) > INDENT_MAX:
            tree = padded(f"┄{line.depth} ", INDENT_MAX, is_right=True)
        yield tree
        open_at.append(not last)


def _lasts(lines: Sequence[Line]) -> list[bool]:
    """Return for each line whether it is the last child of its parent."""
    result = [True] * len(lines)
    seen: set[int] = set()
    for index in range(len(lines) - 1, -1, -1):
        depth = lines[index].depth
        result[index] = depth not in seen
        seen = {other for other in seen if other < depth} | {depth}
    return result


def _belows(trees: Sequence[str]) -> Iterator[str]:
    """Yield the tree branches before the notes below each line."""
    for index, tree in enumerate(trees):
        following = trees[index + 1] if index + 1 < len(trees) else ""
        below = tree.replace("├ ", "│ ").replace("└ ", "  ")
        has_child = len(following) > len(tree)
        yield below + ("│" if has_child else " ")


def _label(tree: str, line: Line, columns: int, paint: Colors) -> str:
    """Return tree, service and name in exactly `columns`."""
    service = safe(line.span["service_name"])
    whole = padded(f"{tree}{service} {safe(line.span['name'])}", columns)
    if not whole.startswith(tree + service):
        return whole
    rest = whole[len(tree) + len(service) :]
    return f"{paint(tree, DIM)}{paint.service(service, line.span['service_name'])}{rest}"


def _bar(line: Line, total: int, columns: int) -> str:
    """Return the bar of a span in exactly `columns`, which cover the whole trace."""
    if total <= 0:
        return padded("▏", columns)
    begin = min(int(line.offset_nano * columns / total), columns - 1)
    end = (line.offset_nano + line.duration_nano) * columns / total
    eighths = max(1, min(round((end - begin) * 8), (columns - begin) * 8))
    full, rest = divmod(eighths, 8)
    return padded(" " * begin + "█" * full + (EIGHTHS[rest] if rest else ""), columns)


def _is_error(line: Line) -> bool:
    return bool(line.span["status_code"] == "ERROR")


Note = tuple[str, tuple[str, ...]]


def _notes(line: Line, begin: int, is_verbose: bool) -> Iterator[Note]:
    """Yield notes on a span: text and colors."""
    span = line.span
    if line.is_orphan:
        yield f"parent span {safe(span['parent_span_id'])} is missing", (DIM,)
    if _is_error(line) and (message := _error_message(span)) is not None:
        yield f"✗ {message}", (RED,)
    links = span["links"] or ()
    if links and not is_verbose:
        yield f"→ {len(links)} link{'' if len(links) == 1 else 's'} (-v lists them)", (DIM,)
    if not is_verbose:
        return
    facts = {
        "span_id": span["span_id"],
        "kind": span["kind"],
        "self": duration_text(line.self_nano),
        **dict(span["attributes"] or {}),
    }
    for name, value in facts.items():
        yield f"{safe(name)} = {safe(text_of(value) or '')}", (DIM,)
    for event in span["events"] or ():
        after = _after(event["time_unix_nano"], begin)
        yield f"• {after} {safe(event['name'] or '')} {_pairs(event['attributes'])}", (DIM,)
    for link in links:
        yield f"→ link to trace {safe(link['trace_id'])}, span {safe(link['span_id'])}", (DIM,)


def _error_message(span: Mapping[str, Any]) -> str | None:
    """Return the error message of a span."""
    for event in span["events"] or ():
        attributes = dict(event["attributes"] or {})
        kind = attributes.get("exception.type")
        message = attributes.get("exception.message")
        if kind or message:
            return safe(": ".join(part for part in (kind, message) if part))
    if span["status_message"]:
        return safe(span["status_message"])
    status = span["http_response_status_code"]
    kind = dict(span["attributes"] or {}).get("error.type")
    return f"HTTP {status}" if status is not None else safe(kind) if kind else None


def _pairs(attributes: object) -> str:
    pairs = dict(attributes or {})  # type: ignore[call-overload] # a map or pairs from Arrow
    return safe(" ".join(f"{name}={text_of(value)}" for name, value in pairs.items()))


def _after(unix_nano: int, begin: int) -> str:
    """Return the time since the start of the trace."""
    sign = "+" if unix_nano >= begin else "-"
    return f"{sign}{duration_text(abs(unix_nano - begin))}"


def _by_span(lines: Sequence[Line], logs: Sequence[LogRow]) -> dict[str | None, list[LogRow]]:
    """Group logs by span; logs of no span of this trace are under None."""
    span_ids = {line.span["span_id"] for line in lines}
    result: dict[str | None, list[LogRow]] = {}
    for row in logs:
        result.setdefault(row.span_id if row.span_id in span_ids else None, []).append(row)
    return result


def _log(row: LogRow, begin: int, front: str, columns: int, paint: Colors) -> str:
    word = severity_word(row.severity_number, row.severity_text)
    body = safe(row.body or row.event_name or "")
    start = f"{front}{_after(row.time_unix_nano, begin)} "
    room = max(1, columns - width(start) - width(word) - 1)
    colored = paint_severity(word, row.severity_number, paint)
    return f"{paint(start, DIM)}{colored} {shortened(body, room)}"
