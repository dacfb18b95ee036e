"""Spark: its jars, and if asked for, a session of it that does something."""

from __future__ import annotations

import importlib.util
import shlex
from collections.abc import Iterator
from pathlib import Path

from frazil.doctor.context import CheckContext, size_text
from frazil.doctor.finding import Finding, Fix, do, failure, run, well
from frazil.errors import FrazilError
from frazil.lake import Session, jars_folder, wrong_jars

ROWS = 1000


def has_lake(case: CheckContext) -> bool:
    """Is the lake wanted, and installed?"""
    libraries = ("pyspark", "pyiceberg")
    return case.config.lake.enabled and all(map(importlib.util.find_spec, libraries))


def check_jars(case: CheckContext) -> Iterator[Finding]:
    """All there, and byte for byte those that Frazil was made with."""
    if not has_lake(case):
        return
    folder = Path(case.config.lake.jars or jars_folder())
    wrong = wrong_jars(folder)
    for path, why in wrong:
        yield failure("jars", f"{path} {why}", _fetch(case, folder))
    if not wrong:
        size = sum(path.stat().st_size for path in (folder / "jars").iterdir())
        yield well("jars", f"{size_text(size)} in {folder}")


def _fetch(case: CheckContext, folder: Path) -> Fix:
    """What is fetched lies in the user's cache. Another folder is filled from there."""
    if case.config.lake.jars is None:
        return run("frazil warm")
    there = shlex.quote(str(folder / "jars"))
    here = shlex.quote(str(jars_folder() / "jars"))
    return run(f"frazil warm && mkdir -p {there} && cp {here}/*.jar {there}")


def check_spark(case: CheckContext) -> Iterator[Finding]:
    """Start a session, and have it count. Takes seconds."""
    if not has_lake(case):
        return
    clock = case.clock
    begin_ns = clock.monotonic_ns()
    session = Session(case.config.lake, {})
    try:
        spark = session.spark()
        started_ns = clock.monotonic_ns()
        count = spark.range(ROWS).count()
        ended_ns = clock.monotonic_ns()
    except FrazilError as error:
        found = " ".join(str(error).split())
        fix = do("mend what is said above of Java and the jars, and look again with --spark")
        yield failure("spark", found, fix)
        return
    finally:
        session.close()
    assert count == ROWS
    start_s, job_s = (started_ns - begin_ns) / 1e9, (ended_ns - started_ns) / 1e9
    yield well("spark", f"started in {start_s:.1f} s, ran its first job in {job_s:.1f} s")
