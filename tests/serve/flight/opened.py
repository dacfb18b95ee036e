"""A Flight SQL port over an open node."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi as adbc
from adbc_driver_flightsql import DatabaseOptions

from frazil.config import Config
from frazil.httpd import Auth
from frazil.model import SystemClock, SystemRand
from frazil.serve import FlightPort, FlightSource
from tests.serve.served import Served, served, settings


@contextmanager
def flight_port(there: Served, config: Config) -> Iterator[int]:
    """Open the port; its number is that of a free one."""
    embedded = there.embedded
    source = FlightSource(
        sql=embedded.sql,
        engine=embedded.engine,
        statements=embedded.statements,
        tables=embedded.tables,
    )
    port = asyncio.run(
        FlightPort.open(
            source,
            config.flight,
            config.ingest,
            config.serve,
            config.query,
            Auth.load(config.ingest),
            clock=SystemClock(),
            rand=SystemRand(),
        )
    )
    try:
        yield port.port
    finally:
        port.close(5)


@contextmanager
def flight_node(folder: Path, **changed: dict[str, Any]) -> Iterator[tuple[Served, int]]:
    """Open a node with these settings, and the port."""
    changed["flight"] = {"port": 0, **changed.get("flight", {})}
    with (
        served(folder, **changed) as there,
        flight_port(there, settings(folder, **changed)) as port,
    ):
        yield there, port


def connected(port: int, **options: str) -> adbc.Connection:
    """Connect by ADBC, which knows no transactions here."""
    return adbc.connect(
        f"grpc://127.0.0.1:{port}",
        db_kwargs={DatabaseOptions[name.upper()].value: value for name, value in options.items()},
        autocommit=True,
    )
