"""The Iceberg catalog: readable, undamaged, and its metadata files exist."""

from __future__ import annotations

import json
import os
import shlex
import socket
import sqlite3
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

from frazil.doctor.checks.spark import has_lake
from frazil.doctor.context import CheckContext
from frazil.doctor.finding import Finding, do, failure, ok, run_as_root
from frazil.errors import FrazilError
from frazil.lake import catalog_path, catalog_properties, open_catalog, probe_warehouse

LOCAL = "file://"
BUSY_S = 5
TIMEOUT_S = 5.0
"""A slower server is not fit for a commit every minute."""


def check_catalog(context: CheckContext) -> Iterator[Finding]:
    """Read an SQLite catalog; query a server."""
    if not has_lake(context):
        return
    try:
        properties = catalog_properties(context.config.lake, context.data)
    except FrazilError as error:
        yield failure("catalog", str(error), do("correct lake.catalog"))
        return
    path = catalog_path(context.config.lake, context.data)
    if path is not None:
        is_readable = context.is_open or not path.is_relative_to(context.data)
        if is_readable:
            yield from _file(path)
        if is_readable or not properties["warehouse"].startswith(LOCAL):
            yield from _warehouse(context, properties)
    elif properties["type"] == "rest":
        yield _server(context, properties["uri"])
    else:
        yield _opened(context)


def _file(path: Path) -> Iterator[Finding]:
    if not path.exists():
        yield ok("catalog", f"{path}, created at the first start")
        return
    try:
        tables = _tables(path)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and not os.access(
            path, os.R_OK | os.W_OK, effective_ids=True
        ):
            fix = run_as_root(f"chown {os.geteuid()} {shlex.quote(str(path))}")
            yield failure("catalog", f"this user cannot write {path}", fix)
            return
        fix = do(
            f"stop the node, restore {path} from a backup, and remove {path.name}-wal and -shm"
        )
        yield failure("catalog", f"{path} is damaged: {error}", fix)
        return
    local = [
        (name, Path(location.removeprefix(LOCAL)))
        for name, location in tables
        if location.startswith(LOCAL)
    ]
    damaged = [(name, file, why) for name, file in local if (why := _damage(file)) is not None]
    for name, file, why in damaged:
        fix = do(f"restore {file} from a backup")
        yield failure("catalog", f"metadata file {file} of table {name} {why}", fix)
    if not damaged:
        yield ok("catalog", f"{path} is intact, with {len(tables)} tables")


def _damage(metadata: Path) -> str | None:
    """Return what is wrong with a table's metadata file, if it is missing or not JSON."""
    try:
        json.loads(metadata.read_bytes())
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except ValueError:
        return "is damaged"
    return None


def _tables(path: Path) -> list[tuple[str, str]]:
    """Return names and metadata locations of the tables, after SQLite's own check."""
    uri = f"{path.as_uri()}?mode=rw"
    with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_S)) as database:
        (result,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if result != "ok":
            raise sqlite3.DatabaseError(result)
        return [
            (f"{namespace}.{name}", location)
            for namespace, name, location in database.execute(
                "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables"
            )
        ]


def _warehouse(context: CheckContext, properties: Mapping[str, str]) -> Iterator[Finding]:
    uri = properties["warehouse"]
    if not uri.startswith(LOCAL):
        yield _store(context, uri, properties)
        return
    folder = Path(uri.removeprefix(LOCAL))
    if folder.exists() and not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
        fix = run_as_root(f"chown -R {os.geteuid()} {shlex.quote(str(folder))}")
        yield failure("warehouse", f"this user cannot write {folder}", fix)


def _store(context: CheckContext, uri: str, properties: Mapping[str, str]) -> Finding:
    endpoint = urlsplit(properties.get("s3.endpoint", ""))
    try:
        if endpoint.hostname is not None:  # the libraries below try for minutes
            port = endpoint.port or (443 if endpoint.scheme == "https" else 80)
            socket.create_connection((endpoint.hostname, port), TIMEOUT_S).close()
        probe_warehouse(context.config.lake, context.data)
    except (OSError, ValueError, FrazilError) as error:
        fix = do(
            "create the bucket, or correct lake.warehouse, and s3.endpoint, s3.region and the keys "
            "in lake.catalog"
        )
        return failure("warehouse", f"{uri} cannot be written: {error}", fix)
    return ok("warehouse", f"{uri} can be written; SQL without Spark cannot read tables there yet")


def _server(context: CheckContext, uri: str) -> Finding:
    """Probe the server with a short timeout, then open the catalog as a node does."""
    fix = do(f"start the catalog at {uri}, or name another in lake.catalog")
    try:
        urllib.request.urlopen(f"{uri.rstrip('/')}/v1/config", timeout=TIMEOUT_S).close()
    except urllib.error.HTTPError as error:
        error.close()  # it responds; opening it below checks the token
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        return failure("catalog", f"{uri} does not respond: {reason}", fix)
    return _opened(context)


def _opened(context: CheckContext) -> Finding:
    config = context.config.lake
    try:
        with closing(open_catalog(config, context.data)) as catalog:
            catalog.list_namespaces()
    except FrazilError as error:
        fix = do("correct the uri, token or credential in lake.catalog")
        return failure("catalog", str(error), fix)
    return ok("catalog", f"{config.catalog_name} responds")
