"""Runs all checks. An error in one does not stop the others."""

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
from frazil.doctor.finding import Finding, do, ok, warning
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
"""In the order of output: what everything needs first, what only the lake needs last."""


WITHOUT_SETTINGS: tuple[Check, ...] = (
    check_python,
    check_libraries,
    check_compiled,
    check_java,
)
"""Checks that also run with invalid settings."""


def examine(
    load: Callable[[], Config],
    *,
    clock: Clock,
    environment: Mapping[str, str],
    with_spark: bool = False,
) -> Iterator[Finding]:
    """Yield the findings for a node with these settings, as they are made."""
    try:
        config = load()
    except InvalidConfig as error:
        yield from settings_findings(error)
        config, checks = Config(), WITHOUT_SETTINGS
    else:
        yield ok("settings", "all are valid")
        checks = (*CHECKS, check_spark) if with_spark else CHECKS
    context = CheckContext(config=config, clock=clock, environment=environment)
    for check in checks:
        yield from findings_of(check, context)


def findings_of(check: Check, context: CheckContext) -> Iterator[Finding]:
    """Yield the findings of one check; an error in it is a finding, too."""
    name = check.__name__.removeprefix("check_").replace("_", " ")
    try:
        yield from check(context)
    except Exception as error:  # noqa: BLE001 top of loop: other checks must still run
        yield warning(
            name,
            f"check failed: {type(error).__name__}: {' '.join(str(error).split())}",
            do(f"report this as a bug of `frazil doctor`, check {name}"),
        )
