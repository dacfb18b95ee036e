"""The program itself: Python, the machine, libraries, compiled code."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from frazil import ingest
from frazil.doctor.context import CheckContext
from frazil.doctor.finding import Finding, do, failure, note, run, well
from frazil.model import arrow

PYTHON_LEAST = (3, 11)
LAKE = "lake"
"""The extra that brings Spark."""
COMPARE = {">=": {0, 1}, ">": {1}, "==": {0}, "<": {-1}, "<=": {-1, 0}, "!=": {-1, 1}}
"""Operator to how a version may stand to the one it names."""
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)\s*(\[[^]]*\])?\s*\(?(?P<wanted>[^;)]*)\)?\s*(;.*)?")


def check_python(_: CheckContext) -> Iterator[Finding]:
    """Version and platform."""
    found = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    if sys.version_info < PYTHON_LEAST:
        least = ".".join(map(str, PYTHON_LEAST))
        yield failure("python", found, do(f"make the environment with Python {least} or newer"))
    elif platform.system() != "Linux":
        yield failure(
            "python", f"{found}; durable files need Linux", do("run Frazil on Linux, or in Docker")
        )
    else:
        yield well("python", found)


def check_libraries(_: CheckContext) -> Iterator[Finding]:
    """What is installed, beside what this release was made for."""
    try:
        requirements = metadata.requires("frazil") or []
    except metadata.PackageNotFoundError:
        yield note(
            "libraries",
            "Frazil runs from its sources, so that versions cannot be compared",
            run("pip install -e ."),
        )
        return
    base = [line for line in requirements if "extra ==" not in line]
    lake = [line for line in requirements if re.search(rf"extra == .{LAKE}\W", line)]
    wrong = [text for line in base if (text := judge(line)) is not None]
    if wrong:
        yield failure("libraries", "; ".join(wrong), run("pip install --upgrade frazil"))
    else:
        yield well("libraries", f"all {len(base)} are there, in versions that fit")
    missing = [text for line in lake if (text := judge(line)) is not None]
    if not missing:
        versions = (f"{name} {metadata.version(name)}" for name in map(_name_of, lake))
        yield well("lake libraries", ", ".join(versions))
    elif all(text.endswith("is not installed") for text in missing):
        found = f"{'; '.join(missing)}: there is no lake, all else works"
        yield note("lake libraries", found, run(f"pip install 'frazil[{LAKE}]'"))
    else:
        yield failure("lake libraries", "; ".join(missing), run(f"pip install 'frazil[{LAKE}]'"))


def judge(requirement: str) -> str | None:
    """What is wrong with the installed version of what a line such as `numpy>=2.0` names."""
    match = REQUIREMENT.fullmatch(requirement.strip())
    assert match is not None, requirement
    name, wanted = match["name"], match["wanted"].strip()
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return f"{name} is not installed"
    for condition in filter(None, (part.strip() for part in wanted.split(","))):
        operator = next(
            each for each in sorted(COMPARE, key=len)[::-1] if condition[: len(each)] == each
        )
        if _order(version, condition.removeprefix(operator)) not in COMPARE[operator]:
            return f"{name} is {version}, and {wanted} is wanted"
    return None


def _name_of(requirement: str) -> str:
    match = REQUIREMENT.fullmatch(requirement.strip())
    assert match is not None, requirement
    return match["name"]


def _order(left: str, right: str) -> int:
    """-1, 0 or 1, by the numbers that versions begin with."""
    sides = [[int(part) for part in re.findall(r"\d+", _release(text))] for text in (left, right)]
    length = max(map(len, sides))
    first, second = ([*side, *[0] * (length - len(side))] for side in sides)
    return (first > second) - (first < second)


def _release(version: str) -> str:
    match = re.match(r"\s*\d+(\.\d+)*", version)
    return match[0] if match else "0"


def check_compiled(_: CheckContext) -> Iterator[Finding]:
    """Compiled code is kept in a cache. Without it, the first start of a node compiles."""
    wanted = list(_kept_functions(ingest, arrow))
    cold = [name for name, file, source in wanted if not _is_fresh(file, source)]
    if cold:
        found = f"{len(cold)} of {len(wanted)} functions are not compiled: the first start has to"
        yield note("compiled code", found, run("frazil warm"))
    else:
        yield well("compiled code", f"{len(wanted)} functions, in {wanted[0][1].parent}")


def _kept_functions(*rooms: ModuleType) -> Iterator[tuple[str, Path, Path]]:
    """Each function that is compiled and kept: its name, the file it is kept in, its source."""
    doors = tuple(f"{room.__name__}." for room in rooms)
    for module_name in sorted(name for name in sys.modules if name.startswith(doors)):
        for compiled in vars(sys.modules[module_name]).values():
            code = getattr(getattr(compiled, "py_func", None), "__code__", None)
            if code is None or compiled.py_func.__module__ != module_name:
                continue
            folder: Any = compiled.stats.cache_path  # none for what is inlined into others
            if folder is not None:
                version = f"py{sys.version_info.major}{sys.version_info.minor}"
                short = f"{module_name.rpartition('.')[2]}.{compiled.py_func.__qualname__}"
                name = f"{short}-{code.co_firstlineno}.{version}.nbi"
                yield short, Path(folder, name), Path(code.co_filename)


def _is_fresh(kept: Path, source: Path) -> bool:
    return kept.is_file() and kept.stat().st_mtime >= source.stat().st_mtime
