"""The Iceberg catalog: opened with PyIceberg, and the same catalog as settings for Spark.

The default is an SQLite file in the data folder. `lake.catalog` holds PyIceberg's properties of any
catalog that Spark supports too; Spark's properties are derived from them.
"""

from __future__ import annotations

import importlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from frazil.disk import RealDisk
from frazil.errors import Malformed, Unavailable
from frazil.lake.catalog.commit_check import with_commit_check

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from frazil.settings import LakeConfig

BUSY_TIMEOUT_S = 30
"""How long SQLite waits for a lock of another process. A commit takes a few milliseconds."""
WAL_ATTEMPTS_MAX = 50
"""Attempts to enable WAL. One fails only while another process creates the same catalog."""
REASON_CHARACTERS_MAX = 500
"""Limit for an error text of a library or a server: some servers send a whole page."""
SQLITE = "sqlite:///"
LOCAL = "file://"
LOCAL_IO = "frazil.lake.catalog.file_io.DurableFileIO"
"""Writes metadata to a local warehouse with fsync, which PyIceberg's own FileIO omits."""
PATH_FORBIDDEN = "?#%"
"""Characters with a meaning in URIs, which the libraries escape differently."""

SQLITE_TABLES = """
CREATE TABLE IF NOT EXISTS iceberg_tables (
    catalog_name VARCHAR(255) NOT NULL,
    table_namespace VARCHAR(255) NOT NULL,
    table_name VARCHAR(255) NOT NULL,
    metadata_location VARCHAR(1000),
    previous_metadata_location VARCHAR(1000),
    iceberg_type VARCHAR(5),
    PRIMARY KEY (catalog_name, table_namespace, table_name)
);
CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (
    catalog_name VARCHAR(255) NOT NULL,
    namespace VARCHAR(255) NOT NULL,
    property_key VARCHAR(255) NOT NULL,
    property_value VARCHAR(1000) NOT NULL,
    PRIMARY KEY (catalog_name, namespace, property_key)
);
"""
"""Iceberg's schema V1. PyIceberg creates the same, but fails if two processes do so at once."""

SPARK_NAMES = {"s3.region": "client.region", "glue.region": "client.region"}
"""PyIceberg properties with another name in Spark. The rest have the same name or no effect."""
PYTHON_ONLY = frozenset(
    {"echo", "init_catalog_tables", "pool_pre_ping", "py-io-impl", "schema_version"}
)

FILE_OPTIONS = ("s3.", "gcs.", "adls.", "client.", "py-io-impl")
"""Properties that say where files are. With no others, the catalog is the embedded one."""

CATALOG_CLASSES = {
    "glue": ("pyiceberg.catalog.glue", "GlueCatalog", "glue"),
    "hive": ("pyiceberg.catalog.hive", "HiveCatalog", "hive"),
    "rest": ("frazil.lake.catalog.rest", "BoundedRestCatalog", "pyarrow"),
    "sql": ("frazil.lake.catalog.sql", "CachedSqlCatalog", "sql-postgres"),
}
"""Module, class and PyIceberg extra of each catalog type."""


def open_catalog(config: LakeConfig, data_folder: Path) -> Catalog:
    """Open the catalog; create it if it is an SQLite file. Raise `Unavailable` if that fails."""
    properties = catalog_properties(config, data_folder)
    with catalog_calls(config):
        if properties.get("uri", "").startswith(SQLITE):
            _prepare_sqlite(sqlite_path(properties["uri"]))
        return _construct(config.catalog_name, properties)


def _construct(name: str, properties: dict[str, str]) -> Catalog:
    # Not `load_catalog`: it adds properties from the environment, which Spark does not see.
    from pyiceberg.exceptions import NotInstalledError

    module, class_name, extra = CATALOG_CLASSES[properties["type"]]
    try:
        catalog_class = getattr(importlib.import_module(module), class_name)
        return with_commit_check(catalog_class)(name, **properties)
    except ImportError as error:
        raise NotInstalledError(f"{error}: pip install 'pyiceberg[{extra}]'") from error


def catalog_properties(config: LakeConfig, data_folder: Path) -> dict[str, str]:
    """Return PyIceberg's properties of the catalog, with defaults filled in."""
    folder = data_folder.absolute() / "lake"
    properties = dict(config.catalog)
    if all(name.startswith(FILE_OPTIONS) for name in properties):
        properties["uri"] = f"{SQLITE}{_uri_path(folder / 'catalog.db')}"
    properties["type"] = _type_of(properties)
    if properties["type"] == "sql":
        properties.setdefault("warehouse", f"{LOCAL}{_uri_path(folder / 'warehouse')}")
    if config.warehouse:
        # For a REST catalog it is a name that the server resolves.
        is_name = properties["type"] == "rest"
        properties["warehouse"] = config.warehouse if is_name else _warehouse(config.warehouse)
    if properties.get("warehouse", "").startswith(LOCAL):
        properties.setdefault("py-io-impl", LOCAL_IO)
    if properties.get("uri", "").startswith(SQLITE):
        path = sqlite_path(properties["uri"])
        properties["uri"] = f"{SQLITE}{_uri_path(path)}?timeout={BUSY_TIMEOUT_S}"
    return properties


def probe_warehouse(config: LakeConfig, data_folder: Path) -> None:
    """Write a file, which needs the bucket and the right to write, and remove it. Raises
    `Unavailable`."""
    from pyiceberg.io import load_file_io

    properties = catalog_properties(config, data_folder)
    probe = f"{properties['warehouse']}/frazil-probe"
    try:
        files = load_file_io(properties, probe)
        with files.new_output(probe).create(overwrite=True) as output:
            output.write(b"written by frazil doctor\n")
        files.delete(probe)
    except (OSError, ValueError, ImportError) as error:
        raise Unavailable(str(error)) from error


def catalog_path(config: LakeConfig, data_folder: Path) -> Path | None:
    """Return the path of an SQLite catalog, or None for any other catalog."""
    uri = catalog_properties(config, data_folder).get("uri", "")
    return sqlite_path(uri) if uri.startswith(SQLITE) else None


def spark_settings(config: LakeConfig, data_folder: Path) -> dict[str, str]:
    """Return the SparkSession settings for the same catalog under the same name."""
    properties = catalog_properties(config, data_folder)
    settings = {
        SPARK_NAMES.get(name, name): value
        for name, value in properties.items()
        if name not in PYTHON_ONLY
    }
    if properties["type"] == "sql":
        settings |= _jdbc(properties["uri"])
    is_bucket = properties.get("warehouse", "").startswith(("s3://", "s3a://"))
    if is_bucket:
        settings.setdefault("io-impl", "org.apache.iceberg.aws.s3.S3FileIO")
    # A REST catalog may keep its warehouse in S3 without saying so in `warehouse`.
    if is_bucket or "s3.endpoint" in settings:
        virtual = settings.pop("s3.force-virtual-addressing", "false").lower() == "true"
        settings.setdefault("s3.path-style-access", str(not virtual).lower())
    # With a cache, Spark would see commits of PyIceberg up to 30 seconds late.
    settings["cache-enabled"] = "false"
    prefix = f"spark.sql.catalog.{config.catalog_name}"
    return {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        **{f"{prefix}.{name}": value for name, value in settings.items()},
    }


def ensure_namespace(catalog: Catalog, config: LakeConfig) -> None:
    """Create the namespace of our tables unless it exists. Safe when two processes race."""
    from pyiceberg.exceptions import NamespaceAlreadyExistsError
    from sqlalchemy.exc import IntegrityError

    if catalog.namespace_exists(config.namespace):
        return
    try:
        catalog.create_namespace(config.namespace)
    except (NamespaceAlreadyExistsError, IntegrityError):
        return


@contextmanager
def catalog_calls(config: LakeConfig) -> Iterator[None]:
    """Raise `Unavailable` for errors of the catalog's library. Not for commits of rows: after an
    error, the caller must check whether they succeeded."""
    from pyiceberg.exceptions import NotInstalledError

    errors: tuple[type[Exception], ...] = (*unavailable_errors(), sqlite3.Error, NotInstalledError)
    try:
        yield
    except rejection_errors() as error:
        raise Unavailable(
            f"the catalog {config.catalog_name} rejected the request: {_reason(error)}. "
            "Check the token or credential in lake.catalog, and lake.warehouse"
        ) from error
    except errors as error:
        raise Unavailable(
            f"the catalog {config.catalog_name} does not respond: {_reason(error)}. "
            "Check that it runs, lake.catalog and lake.warehouse"
        ) from error


def unavailable_errors() -> tuple[type[Exception], ...]:
    """Return the errors of catalog libraries for no response, an unreadable one (such as the page
    of a gateway), or a rejection."""
    from pydantic import ValidationError
    from pyiceberg.exceptions import RESTError
    from sqlalchemy.exc import SQLAlchemyError

    return (SQLAlchemyError, RESTError, ValidationError, NotImplementedError, OSError)


def rejection_errors() -> tuple[type[Exception], ...]:
    """Return those of `unavailable_errors` that no retry will cure."""
    from pyiceberg.exceptions import (
        BadRequestError,
        ForbiddenError,
        OAuthError,
        UnauthorizedError,
    )

    return (BadRequestError, ForbiddenError, OAuthError, UnauthorizedError)


def _reason(error: Exception) -> str:
    """Return the error as one line of limited length."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:REASON_CHARACTERS_MAX]}"


def _type_of(properties: dict[str, str]) -> str:
    known = ("glue", "hive", "rest", "sql")
    name = properties.get("type") or _inferred_type(properties)
    if name not in known or (name != "glue" and not properties.get("uri")):
        raise Malformed(
            f"lake.catalog has type {properties.get('type')!r} and uri {_host(properties)}; it "
            f"needs a type of {', '.join(known)}, and all but glue a uri"
        )
    return name


def _inferred_type(properties: dict[str, str]) -> str | None:
    """Return the catalog type for the URI, without importing PyIceberg (slow) for SQLite."""
    if properties.get("uri", "").startswith(SQLITE):
        return "sql"
    from pyiceberg.catalog import infer_catalog_type

    try:
        inferred = infer_catalog_type("", dict(properties))
    except ValueError:
        return None
    return None if inferred is None else inferred.value


def _host(properties: dict[str, str]) -> str:
    """Return scheme and host of the URI, without user and password."""
    parts = urlsplit(properties.get("uri", ""))
    return repr(f"{parts.scheme}://{parts.hostname or ''}") if parts.scheme else "none"


def _warehouse(text: str) -> str:
    """Return a URI unchanged, and a folder as a URI."""
    return text if "://" in text else f"{LOCAL}{_uri_path(Path(text).absolute())}"


def _uri_path(path: Path) -> str:
    text = str(path)
    if any(character in text for character in PATH_FORBIDDEN):
        raise Malformed(
            f"{text!r} cannot hold the catalog or the warehouse: its name contains one of "
            f"{' '.join(PATH_FORBIDDEN)}, which have a meaning in URIs; choose another folder"
        )
    return text


def sqlite_path(uri: str) -> Path:
    """Return the path of the file in an SQLite URI."""
    return Path(uri.removeprefix(SQLITE).partition("?")[0]).absolute()


def _prepare_sqlite(path: Path) -> None:
    """Create the file and its tables durably, in WAL mode: readers do not block the writer."""
    disk = RealDisk(path.parent)
    with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)) as database:
        _switch_to_wal(database)
        database.executescript(SQLITE_TABLES)
    disk.sync_directory("")


def _switch_to_wal(database: sqlite3.Connection) -> None:
    """Enable WAL, permanently. The busy timeout does not apply to this statement, so wait with an
    exclusive transaction and try again."""
    for attempt in range(WAL_ATTEMPTS_MAX):
        try:
            database.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if attempt == WAL_ATTEMPTS_MAX - 1:
                raise
            database.execute("BEGIN EXCLUSIVE")
            database.execute("ROLLBACK")
        else:
            return


def _jdbc(uri: str) -> dict[str, str]:
    """Return Spark's JDBC properties for an SQLAlchemy URI, with the same SQLite durability."""
    settings = {"type": "jdbc", "jdbc.schema-version": "V1"}
    if uri.startswith(SQLITE):
        busy_ms = BUSY_TIMEOUT_S * 1000
        pragmas = f"journal_mode=WAL&synchronous=FULL&busy_timeout={busy_ms}"
        return {**settings, "uri": f"jdbc:sqlite:{sqlite_path(uri)}?{pragmas}"}
    parts = urlsplit(uri)
    address = parts.netloc.rpartition("@")[2]
    query = f"?{parts.query}" if parts.query else ""
    settings["uri"] = f"jdbc:{parts.scheme.partition('+')[0]}://{address}{parts.path}{query}"
    if parts.username:
        settings["jdbc.user"] = unquote(parts.username)
    if parts.password:
        settings["jdbc.password"] = unquote(parts.password)
    return settings
