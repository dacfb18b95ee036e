"""Invalid settings: one finding per problem."""

from __future__ import annotations

from collections.abc import Iterator

from frazil.config import InvalidConfig, SettingProblem
from frazil.doctor.finding import Finding, Fix, do, failure, run


def settings_findings(error: InvalidConfig) -> Iterator[Finding]:
    for problem in error.problems:
        yield failure("settings", problem.message, fix_of(problem))


def fix_of(problem: SettingProblem) -> Fix:
    origin, name = problem.origin, problem.name
    if origin is not None and origin.source == "environment":
        return run(f"unset {origin.name}")
    if origin is None or origin.source != "file":
        return do("correct it where it was set: a flag, a FRAZIL_ variable, or the file")
    if problem.kind == "unreadable":
        return do(f"make {origin.name} readable, or name another file with --config")
    if problem.kind == "not_toml":
        return do(f"correct {origin.name} at the line named above")
    if problem.kind == "unknown":
        if problem.suggestion:
            return do(f"rename {name} to {problem.suggestion} in {origin.name}")
        return do(f"remove {name} from {origin.name}")
    return do(f"correct {name} in {origin.name}")
