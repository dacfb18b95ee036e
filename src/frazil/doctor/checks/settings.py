"""Settings that are refused: the refusal says what is wrong and where, this says how to mend it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from frazil.doctor.finding import Finding, Fix, do, failure, run

UNREADABLE = re.compile(r"(?P<file>.+) cannot be read: ")
NOT_TOML = re.compile(r"(?P<file>.+) is not TOML: ")
VARIABLE = re.compile(r"environment variable (?P<name>\w+)\b")
LINE = re.compile(r"(?P<file>.+), line (?P<line>\d+): ")
SLIP = re.compile(r"(?P<given>[\w.]+) is not a setting; did you mean (?P<meant>[\w.]+)\?$")
STRANGE = re.compile(r"\S+ is not a (setting|table of settings)")


def settings_findings(refusal: str) -> Iterator[Finding]:
    """One for each line of a refusal: each is about one setting."""
    for line in refusal.splitlines():
        yield failure("settings", line, mend(line))


def mend(refusal: str) -> Fix:
    """The line that makes a setting one that is taken."""
    if match := UNREADABLE.match(refusal):
        return do(f"put {match['file']} where it can be read, or name another with --config")
    if match := NOT_TOML.match(refusal):
        return do(f"correct {match['file']} where it is said to be wrong")
    if match := VARIABLE.match(refusal):
        return run(f"unset {match['name']}")
    if match := LINE.match(refusal):
        return _mend_line(match["file"], match["line"], refusal[match.end() :])
    return do("correct it where it was set: a flag, a FRAZIL_ variable, or the file of --config")


def _mend_line(file: str, line: str, sentence: str) -> Fix:
    """A slip is put right; a line with a name that nobody knows goes."""
    if match := SLIP.match(sentence):
        given, meant = match["given"], match["meant"]
        table = given.rpartition(".")[0]
        if meant.rpartition(".")[0] == table:
            old, new = given.rpartition(".")[2], meant.rpartition(".")[2]
            return run(f"sed -i '{line}s/{old}/{new}/' {shlex.quote(file)}")
    if STRANGE.match(sentence):
        return run(f"sed -i {line}d {shlex.quote(file)}")
    return do(f"correct line {line} of {file}")
