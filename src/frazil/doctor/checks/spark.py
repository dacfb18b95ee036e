"""Spark: its jars, and on request a session that runs a job."""

from __future__ import annotations

import importlib.util
import shlex
from collections.abc import Iterator
from pathlib import Path

from frazil.doctor.context import CheckContext, size_text
from frazil.doctor.finding import Finding, Fix, do, failure, ok, run
from frazil.errors import FrazilError
from frazil.lake import Session, jars_folder, wrong_jars

ROWS = 1000


def has_lake(context: CheckContext) -> bool:
    """Return whether the lake is enabled and installed."""
    libraries = ("pyspark", "pyiceberg")
    return context.config.lake.enabled and all(map(importlib.util.find_spec, libraries))


def check_jars(context: CheckContext) -> Iterator[Finding]:
    """Check that all jars exist, byte for byte those of this release."""
    if not has_lake(context):
        return
    folder = Path(context.config.lake.jars or jars_folder())
    wrong = wrong_jars(folder)
    for path, why in wrong:
        yield failure("jars", f"{path} {why}", _download(context, folder))
    if not wrong:
        size = sum(path.stat().st_size for path in (folder / "jars").iterdir())
        yield ok("jars", f"{size_text(size)} in {folder}")


def _download(context: CheckContext, folder: Path) -> Fix:
    """Return the fix: download to the user's cache, and copy from there to another folder."""
    if context.config.lake.jars is None:
        return run("frazil warm")
    target = shlex.quote(str(folder / "jars"))
    cache = shlex.quote(str(jars_folder() / "jars"))
    return run(f"frazil warm && mkdir -p {target} && cp {cache}/*.jar {target}")


def check_spark(context: CheckContext) -> Iterator[Finding]:
    """Start a session and run a job. Takes seconds."""
    if not has_lake(context):
        return
    clock = context.clock
    start_ns = clock.monotonic_ns()
    session = Session(context.config.lake, {})
    try:
        spark = session.spark()
        started_ns = clock.monotonic_ns()
        count = spark.range(ROWS).count()
        ended_ns = clock.monotonic_ns()
    except FrazilError as error:
        text = " ".join(str(error).split())
        fix = do("fix Java and the jars (see above), then check again with --spark")
        yield failure("spark", text, fix)
        return
    finally:
        session.close()
    assert count == ROWS
    start_s, job_s = (started_ns - start_ns) / 1e9, (ended_ns - started_ns) / 1e9
    yield ok("spark", f"started in {start_s:.1f} s, ran its first job in {job_s:.1f} s")
