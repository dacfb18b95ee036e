"""promqltest scripts: what they load, evaluate and expect."""

from __future__ import annotations

import re

import msgspec

from tests.languages.promql.notation import duration_ms

_LOAD = re.compile(r"^load(_with_nhcb)?\s+(\S+)$")
_INSTANT = re.compile(r"^eval(?:_(fail|warn|ordered|info))?\s+instant\s+(?:at\s+(\S+))?\s+(.+)$")
_RANGE = re.compile(
    r"^eval(?:_(fail|warn|info))?\s+range\s+from\s+(\S+)\s+to\s+(\S+)\s+step\s+(\S+)\s+(.+)$"
)
_EXPECT = re.compile(r"^expect\s+(ordered|fail|warn|no_warn|info|no_info)(?:\s+(regex|msg):(.+))?$")
_POINTS = re.compile(r"^expect range vector\s+from\s+(\S+)\s+to\s+(\S+)\s+step\s+(\S+)$")
_TEXT = re.compile(r"^expect string (.+)$")


class Expectation(msgspec.Struct, array_like=True):
    """What an evaluation should say: a kind, and perhaps a message or a pattern."""

    kind: str
    match: str = ""
    text: str = ""


class Command(msgspec.Struct, omit_defaults=True):
    """A `load`, an `eval` or a `clear`."""

    name: str
    line: int = 0
    query: str = ""
    start_ms: int = 0
    end_ms: int = 0
    step_ms: int = 0
    is_range: bool = False
    has_points: bool = False
    with_custom: bool = False
    text: str | None = None
    expects: list[Expectation] = []
    lines: list[str] = []


def commands_of(script: str) -> list[Command]:
    """Read a script."""
    lines = [line.strip() for line in script.split("\n")]
    lines = ["" if line.startswith("#") else line for line in lines]
    found: list[Command] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if not line:
            continue
        if line == "clear":
            found.append(Command("clear"))
            continue
        end = at
        while end < len(lines) and lines[end]:
            end += 1
        body, begin, at = lines[at:end], at, end
        if line.startswith("load"):
            match = _LOAD.match(line)
            assert match, line
            command = Command(
                "load", step_ms=duration_ms(match[2]), with_custom=bool(match[1]), lines=body
            )
            found.append(command)
        else:
            found.append(_evaluation(line, begin, body))
    return found


def _evaluation(line: str, number: int, body: list[str]) -> Command:
    if match := _RANGE.match(line):
        start, end, step = (duration_ms(match[at]) for at in (2, 3, 4))
        command = Command("eval", number, match[5], start, end, step, is_range=True)
    else:
        match = _INSTANT.match(line)
        assert match, line
        time = duration_ms(match[2] or "0")
        command = Command("eval", number, match[3], time, time)
    if match[1]:
        command.expects = [Expectation(match[1])]
    for each in body:
        _expect(command, each)
    return command


def _expect(command: Command, line: str) -> None:
    if points := _POINTS.match(line):
        command.start_ms, command.end_ms, command.step_ms = map(duration_ms, points.groups())
        command.has_points = True
    elif text := _TEXT.match(line):
        command.text = text[1]
    elif line.startswith("expect "):
        match = _EXPECT.match(line)
        assert match, line
        command.expects = [
            *command.expects,
            Expectation(match[1], match[2] or "", (match[3] or "").strip()),
        ]
    else:
        command.lines = [*command.lines, line]
