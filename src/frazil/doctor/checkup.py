"""Examine: all checks, one after the other. One that breaks does not hide the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from frazil.config import Config, InvalidConfig
from frazil.doctor.checks.catalog import check_catalog
from frazil.doctor.checks.clock import check_clock
from frazil.doctor.checks.credentials import check_access
from frazil.doctor.checks.data_folder import check_folder, check_space, check_sync
from frazil.doctor.checks.java import check_java
from frazil.doctor.checks.limits import check_memory, check_open_files
from frazil.doctor.checks.log import check_log
from frazil.doctor.checks.node import check_exporters, check_node
from frazil.doctor.checks.ports import check_ports
from frazil.doctor.checks.python import check_compiled, check_libraries, check_python
from frazil.doctor.checks.settings import settings_findings
from frazil.doctor.checks.spark import check_jars, check_spark
from frazil.doctor.context import Check, CheckContext
from frazil.doctor.finding import Finding, do, warning, well
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


WITHOUT_SETTINGS: tuple[Check, ...] = (
    check_python,
    check_libraries,
    check_compiled,
    check_java,
)
"""What can be looked at all the same when the settings are refused."""


def examine(
    load: Callable[[], Config],
    *,
    clock: Clock,
    environment: Mapping[str, str],
    with_spark: bool = False,
) -> Iterator[Finding]:
    """What there is to say about a node with these settings, as it is found."""
    try:
        config = load()
    except InvalidConfig as error:
        yield from settings_findings(error)
        config, checks = Config(), WITHOUT_SETTINGS
    else:
        yield well("settings", "all are known, and fit together")
        checks = (*CHECKS, check_spark) if with_spark else CHECKS
    case = CheckContext(config=config, clock=clock, environment=environment)
    for check in checks:
        yield from findings_of(check, case)


def findings_of(check: Check, case: CheckContext) -> Iterator[Finding]:
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
