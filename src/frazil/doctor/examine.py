"""Examine: all checks, one after the other. One that breaks does not hide the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from frazil.config import Config, load
from frazil.doctor.access import check_access
from frazil.doctor.case import Case, Check
from frazil.doctor.catalog import check_catalog
from frazil.doctor.clock import check_clock
from frazil.doctor.finding import Finding, do, failure, warning, well
from frazil.doctor.folder import check_folder, check_space, check_sync
from frazil.doctor.java import check_java
from frazil.doctor.limits import check_memory, check_open_files
from frazil.doctor.node import check_exporters, check_node
from frazil.doctor.ports import check_ports
from frazil.doctor.program import check_compiled, check_libraries, check_python
from frazil.doctor.records import check_log
from frazil.doctor.settings import mend_settings
from frazil.doctor.spark import check_jars, check_spark
from frazil.errors import Malformed
from frazil.model import Clock

CHECKS: tuple[Check, ...] = (
    check_python,
    check_libraries,
    check_compiled,
    check_folder,
    check_space,
    check_sync,
    check_log,
    check_clock,
    check_open_files,
    check_memory,
    check_access,
    check_ports,
    check_node,
    check_exporters,
    check_java,
    check_jars,
    check_catalog,
)
"""From what everything needs to what only the lake does."""


def examine(
    config_file: str | None,
    overrides: dict[str, Any],
    *,
    clock: Clock,
    environment: Mapping[str, str],
    with_spark: bool = False,
) -> Iterator[Finding]:
    """What there is to say about a node with these settings, as it is found."""
    try:
        config = load(config_file, overrides)
    except Malformed as error:
        yield failure("settings", str(error), mend_settings(config_file, str(error)))
        # What does not depend on them is looked at all the same.
        case = Case(config=Config(), clock=clock, environment=environment)
        for check in (check_python, check_libraries, check_compiled, check_java):
            yield from findings_of(check, case)
        return
    yield well("settings", config_file or "no file; defaults, environment and flags")
    case = Case(config=config, clock=clock, environment=environment)
    for check in (*CHECKS, *((check_spark,) if with_spark else ())):
        yield from findings_of(check, case)


def findings_of(check: Check, case: Case) -> Iterator[Finding]:
    """What one check finds; that it broke is a finding, too."""
    name = check.__name__.removeprefix("check_").replace("_", " ")
    try:
        yield from check(case)
    except Exception as error:  # noqa: BLE001 top of loop: the next check knows nothing of this one
        yield warning(
            name,
            f"could not be looked at: {type(error).__name__}: {' '.join(str(error).split())}",
            do(f"report this as a bug of `frazil doctor`, with the check's name: {name}"),
        )
