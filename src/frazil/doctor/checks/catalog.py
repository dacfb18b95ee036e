"""The catalog: can it be read, and is what it names there?"""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from frazil.doctor.checks.spark import has_lake
from frazil.doctor.context import CheckContext
from frazil.doctor.finding import Finding, do, failure, run_as_root, well
from frazil.errors import FrazilError
from frazil.lake import catalog_path, catalog_properties, open_catalog

LOCAL = "file://"
BUSY_S = 5
ANSWER_S = 5.0
"""A server that takes longer than this is not one to commit to every minute."""


def check_catalog(case: CheckContext) -> Iterator[Finding]:
    """An SQLite file is read; a server is asked."""
    if not has_lake(case):
        return
    properties = catalog_properties(case.config.lake, case.data)
    path = catalog_path(case.config.lake, case.data)
    if path is not None:
        if case.is_open or not path.is_relative_to(case.data):
            yield from _file(path)
            yield from _warehouse(properties.get("warehouse", ""))
    elif properties["type"] == "rest":
        yield _server(case, properties["uri"])
    else:
        yield _opened(case)


def _file(path: Path) -> Iterator[Finding]:
    if not path.exists():
        yield well("catalog", f"{path}, made at the first start")
        return
    try:
        tables = _tables(path)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and not os.access(
            path, os.R_OK | os.W_OK, effective_ids=True
        ):
            fix = run_as_root(f"chown {os.geteuid()} {shlex.quote(str(path))}")
            yield failure("catalog", f"{path} cannot be written by this user", fix)
            return
        fix = do(f"stop the node, restore {path} from a copy, and remove {path.name}-wal and -shm")
        yield failure("catalog", f"{path} is damaged: {error}", fix)
        return
    local = [each for each in tables if each[1].startswith(LOCAL)]
    described = [(name, Path(location.removeprefix(LOCAL))) for name, location in local]
    wrong = [(name, file, why) for name, file in described if (why := _wrong(file)) is not None]
    for name, file, why in wrong:
        fix = do(f"restore {file} from a copy")
        yield failure("catalog", f"the table {name} is described by {file}, which {why}", fix)
    if not wrong:
        yield well("catalog", f"{path} is whole, with {len(tables)} tables")


def _wrong(metadata: Path) -> str | None:
    """What is wrong with a table's metadata file, if it can be seen at a glance."""
    try:
        json.loads(metadata.read_bytes())
    except FileNotFoundError:
        return "is gone"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except ValueError:
        return "is damaged"
    return None


def _tables(path: Path) -> list[tuple[str, str]]:
    """Names and places of the tables, once SQLite has found no damage."""
    uri = f"{path.as_uri()}?mode=rw"
    with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_S)) as database:
        (said,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if said != "ok":
            raise sqlite3.DatabaseError(said)
        return [
            (f"{namespace}.{name}", location)
            for namespace, name, location in database.execute(
                "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables"
            )
        ]


def _warehouse(uri: str) -> Iterator[Finding]:
    if not uri.startswith(LOCAL):
        return
    folder = Path(uri.removeprefix(LOCAL))
    if folder.exists() and not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
        fix = run_as_root(f"chown -R {os.geteuid()} {shlex.quote(str(folder))}")
        yield failure("warehouse", f"{folder} cannot be written by this user", fix)


def _server(case: CheckContext, uri: str) -> Finding:
    """Ask once with little patience; then as a node does."""
    fix = do(f"start the catalog at {uri}, or name another in lake.catalog")
    try:
        urllib.request.urlopen(f"{uri.rstrip('/')}/v1/config", timeout=ANSWER_S).close()
    except urllib.error.HTTPError as refusal:
        refusal.close()  # it answers; whether it wants a token is seen below
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        return failure("catalog", f"{uri} does not answer: {reason}", fix)
    return _opened(case)


def _opened(case: CheckContext) -> Finding:
    config = case.config.lake
    try:
        with closing(open_catalog(config, case.data)) as catalog:
            catalog.list_namespaces()
    except FrazilError as error:
        fix = do("correct the uri, token or credential in lake.catalog")
        return failure("catalog", str(error), fix)
    return well("catalog", f"{config.catalog_name} answers")
