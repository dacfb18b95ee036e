"""Python, the platform, libraries, compiled code."""

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
from frazil.doctor.finding import Finding, do, failure, note, ok, run, warning
from frazil.log import produce
from frazil.model import arrow

PYTHON_MIN = (3, 11)
LAKE = "lake"
"""The extra that brings Spark."""
COMPARE = {">=": {0, 1}, ">": {1}, "==": {0}, "<": {-1}, "<=": {-1, 0}, "!=": {-1, 1}}
"""Operator -> allowed results of the comparison."""
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)\s*(\[[^]]*\])?\s*\(?(?P<versions>[^;)]*)\)?\s*(;.*)?")


def check_python(_: CheckContext) -> Iterator[Finding]:
    """Check version and platform."""
    text = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    if sys.version_info < PYTHON_MIN:
        minimum = ".".join(map(str, PYTHON_MIN))
        yield failure("python", text, do(f"create the environment with Python {minimum} or newer"))
    elif platform.system() == "Darwin":
        yield warning(
            "python",
            f"{text}; Frazil is not tested on macOS",
            do("keep data that matters on Linux"),
        )
    elif platform.system() != "Linux":
        yield failure(
            "python", f"{text}; durable files need Linux", do("run Frazil on Linux, or in Docker")
        )
    else:
        yield ok("python", text)


def check_libraries(_: CheckContext) -> Iterator[Finding]:
    """Compare installed versions with the requirements of this release."""
    try:
        requirements = metadata.requires("frazil") or []
    except metadata.PackageNotFoundError:
        yield note(
            "libraries",
            "Frazil runs from source, so versions cannot be checked",
            run("pip install -e ."),
        )
        return
    base = [line for line in requirements if "extra ==" not in line]
    lake = [line for line in requirements if re.search(rf"extra == .{LAKE}\W", line)]
    wrong = [text for line in base if (text := problem_of(line)) is not None]
    if wrong:
        yield failure("libraries", "; ".join(wrong), run("pip install frazil"))
    else:
        yield ok("libraries", f"all {len(base)} are installed in compatible versions")
    missing = [text for line in lake if (text := problem_of(line)) is not None]
    if not missing:
        versions = (f"{name} {metadata.version(name)}" for name in map(_name_of, lake))
        yield ok("lake libraries", ", ".join(versions))
    elif all(text.endswith("is not installed") for text in missing):
        text = f"{'; '.join(missing)}: no lake; everything else works"
        yield note("lake libraries", text, run(f"pip install 'frazil[{LAKE}]'"))
    else:
        yield failure("lake libraries", "; ".join(missing), run(f"pip install 'frazil[{LAKE}]'"))


def problem_of(requirement: str) -> str | None:
    """Return what is wrong with the installed version of a requirement such as `numpy>=2.0`."""
    match = REQUIREMENT.fullmatch(requirement.strip())
    assert match is not None, requirement
    name, versions = match["name"], match["versions"].strip()
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return f"{name} is not installed"
    for condition in filter(None, (part.strip() for part in versions.split(","))):
        operator = next(
            each for each in sorted(COMPARE, key=len)[::-1] if condition[: len(each)] == each
        )
        if _order(version, condition.removeprefix(operator)) not in COMPARE[operator]:
            return f"{name} is {version}, but {versions} is required"
    return None


def _name_of(requirement: str) -> str:
    match = REQUIREMENT.fullmatch(requirement.strip())
    assert match is not None, requirement
    return match["name"]


def _order(left: str, right: str) -> int:
    """Compare the leading numbers of two versions: -1, 0 or 1."""
    sides = [[int(part) for part in re.findall(r"\d+", _release(text))] for text in (left, right)]
    length = max(map(len, sides))
    first, second = ([*side, *[0] * (length - len(side))] for side in sides)
    return (first > second) - (first < second)


def _release(version: str) -> str:
    match = re.match(r"\s*\d+(\.\d+)*", version)
    return match[0] if match else "0"


def check_compiled(_: CheckContext) -> Iterator[Finding]:
    """Check the cache of compiled code. Without it, the first start of a node compiles."""
    functions = list(_cached_functions(ingest, arrow, produce))
    missing = [name for name, file, source in functions if not _is_fresh(file, source)]
    if missing:
        text = f"{len(missing)} of {len(functions)} functions are not compiled: slow first start"
        yield note("compiled code", text, run("frazil warm"))
    else:
        yield ok("compiled code", f"{len(functions)} functions, in {functions[0][1].parent}")


def _cached_functions(*rooms: ModuleType) -> Iterator[tuple[str, Path, Path]]:
    """Yield each cached compiled function: its name, its cache file, its source."""
    doors = tuple(f"{room.__name__}." for room in rooms)
    for module_name in sorted(name for name in sys.modules if name.startswith(doors)):
        for compiled in vars(sys.modules[module_name]).values():
            code = getattr(getattr(compiled, "py_func", None), "__code__", None)
            if code is None or compiled.py_func.__module__ != module_name:
                continue
            folder: Any = compiled.stats.cache_path  # None for functions inlined into others
            if folder is not None:
                version = f"py{sys.version_info.major}{sys.version_info.minor}"
                short_name = f"{module_name.rpartition('.')[2]}.{compiled.py_func.__qualname__}"
                name = f"{short_name}-{code.co_firstlineno}.{version}.nbi"
                yield short_name, Path(folder, name), Path(code.co_filename)


def _is_fresh(cached: Path, source: Path) -> bool:
    return cached.is_file() and cached.stat().st_mtime >= source.stat().st_mtime
