"""The catalog that names the tables: opened for PyIceberg, and described to Spark as the same one.

Without settings it is an SQLite file beside the data. Any that both know will do: what stands in
`lake.catalog` are PyIceberg's properties, and those of Spark are made of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from frazil.disk import RealDisk
from frazil.errors import Malformed, Unavailable
from frazil.lake.catalog.commit_check import look_when_refused

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from frazil.lake.config import LakeConfig

BUSY_TIMEOUT_S = 30
"""How long SQLite waits for another process. A commit takes some milliseconds."""
SWITCHES_MAX = 50
"""Each fails because of another process that opens a new catalog at the same moment."""
REASON_CHARACTERS_MAX = 500
"""Of what a library or a server says."""
SQLITE = "sqlite:///"
LOCAL = "file://"
LOCAL_IO = "frazil.lake.catalog.file_io.DurableFileIO"
"""Who writes metadata to a local warehouse: PyIceberg's own does not sync."""
PATH_FORBIDDEN = "?#%"
"""URIs give these a meaning, and the libraries do not agree on how to hide it."""

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
"""Iceberg's schema V1. PyIceberg makes the same, but fails when another process does so, too."""

SPARK_NAMES = {"s3.region": "client.region", "glue.region": "client.region"}
"""Properties that Spark has under another name. All others have one, or mean nothing there."""
PYTHON_ONLY = frozenset(
    {"echo", "init_catalog_tables", "pool_pre_ping", "py-io-impl", "schema_version"}
)


def open_catalog(config: LakeConfig, data_folder: Path) -> Catalog:
    """The catalog, made if it is an SQLite file. `Unavailable` if it cannot be reached."""
    # Not `load_catalog`: it adds what it finds in the environment, of which Spark knows nothing.
    from pyiceberg.catalog import AVAILABLE_CATALOGS, CatalogType

    properties = catalog_properties(config, data_folder)
    with reached(config):
        if properties.get("uri", "").startswith(SQLITE):
            _prepare_sqlite(sqlite_path(properties["uri"]))
        if properties["type"] == "rest":
            from frazil.lake.catalog.rest import BoundedRestCatalog

            made: Catalog = BoundedRestCatalog(config.catalog_name, **properties)
        else:
            kind = CatalogType(properties["type"])
            made = AVAILABLE_CATALOGS[kind](config.catalog_name, properties)
    look_when_refused(made)
    return made


def catalog_properties(config: LakeConfig, data_folder: Path) -> dict[str, str]:
    """PyIceberg's properties of the catalog, with what was not set."""
    folder = data_folder.absolute() / "lake"
    properties = dict(config.catalog) or {"uri": f"{SQLITE}{_plain(folder / 'catalog.db')}"}
    properties["type"] = _type_of(properties)
    if properties["type"] == "sql":
        properties.setdefault("warehouse", f"{LOCAL}{_plain(folder / 'warehouse')}")
    if config.warehouse:
        # To a REST catalog it is a name, of which the server knows what it means.
        is_name = properties["type"] == "rest"
        properties["warehouse"] = config.warehouse if is_name else _warehouse(config.warehouse)
    if properties.get("warehouse", "").startswith(LOCAL):
        properties.setdefault("py-io-impl", LOCAL_IO)
    if properties.get("uri", "").startswith(SQLITE):
        path = sqlite_path(properties["uri"])
        properties["uri"] = f"{SQLITE}{_plain(path)}?timeout={BUSY_TIMEOUT_S}"
    return properties


def catalog_path(config: LakeConfig, data_folder: Path) -> Path | None:
    """The file that the catalog is, or will be; None when it is no file."""
    uri = catalog_properties(config, data_folder).get("uri", "")
    return sqlite_path(uri) if uri.startswith(SQLITE) else None


def spark_settings(config: LakeConfig, data_folder: Path) -> dict[str, str]:
    """Settings of a SparkSession that give it the same catalog under the same name."""
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
    # What the warehouse of a REST catalog is, only the server knows.
    if is_bucket or "s3.endpoint" in settings:
        virtual = settings.pop("s3.force-virtual-addressing", "false").lower() == "true"
        settings.setdefault("s3.path-style-access", str(not virtual).lower())
    # Otherwise Spark would not see for half a minute what PyIceberg has committed.
    settings["cache-enabled"] = "false"
    prefix = f"spark.sql.catalog.{config.catalog_name}"
    return {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        **{f"{prefix}.{name}": value for name, value in settings.items()},
    }


def ensure_namespace(catalog: Catalog, config: LakeConfig) -> None:
    """Make the namespace of our tables. That somebody else makes it now is as good."""
    from pyiceberg.exceptions import NamespaceAlreadyExistsError
    from sqlalchemy.exc import IntegrityError

    if catalog.namespace_exists(config.namespace):
        return
    try:
        catalog.create_namespace(config.namespace)
    except (NamespaceAlreadyExistsError, IntegrityError):
        return


@contextmanager
def reached(config: LakeConfig) -> Iterator[None]:
    """Whatever a catalog's library raises when it gets no answer, or none it can use, becomes
    `Unavailable`. Not for commits of rows: whether those were done must be looked up."""
    from pyiceberg.exceptions import NotInstalledError

    unanswered: tuple[type[Exception], ...] = (*no_answer(), sqlite3.Error, NotInstalledError)
    try:
        yield
    except says_no() as error:
        raise Unavailable(
            f"the catalog {config.catalog_name} says no: {_reason(error)}. Check the token or "
            "credential in lake.catalog, and what lake.warehouse says"
        ) from error
    except unanswered as error:
        raise Unavailable(
            f"the catalog {config.catalog_name} does not answer: {_reason(error)}. "
            "Check that it runs, and what lake.catalog and lake.warehouse say"
        ) from error


def no_answer() -> tuple[type[Exception], ...]:
    """What the libraries of catalogs raise when they get no answer, or one that they cannot read,
    such as the page of a gateway; or one that says no, or not now."""
    from pydantic import ValidationError
    from pyiceberg.exceptions import RESTError
    from sqlalchemy.exc import SQLAlchemyError

    return (SQLAlchemyError, RESTError, ValidationError, NotImplementedError, OSError)


def says_no() -> tuple[type[Exception], ...]:
    """What they raise, of that, when asking again is of no use."""
    from pyiceberg.exceptions import (
        BadRequestError,
        ForbiddenError,
        OAuthError,
        UnauthorizedError,
    )

    return (BadRequestError, ForbiddenError, OAuthError, UnauthorizedError)


def _reason(error: Exception) -> str:
    """In one line, also when the answer was a whole page."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:REASON_CHARACTERS_MAX]}"


def _type_of(properties: dict[str, str]) -> str:
    known = ("glue", "hive", "rest", "sql")
    name = properties.get("type") or _guessed(properties)
    if name not in known or (name != "glue" and not properties.get("uri")):
        raise Malformed(
            f"lake.catalog has type {properties.get('type')!r} and uri {_host(properties)}; it "
            f"needs a type of {', '.join(known)}, and all but glue a uri"
        )
    return name


def _guessed(properties: dict[str, str]) -> str | None:
    """The type that goes with the URI. No start waits for PyIceberg where it is our own file."""
    if properties.get("uri", "").startswith(SQLITE):
        return "sql"
    from pyiceberg.catalog import infer_catalog_type

    try:
        found = infer_catalog_type("", dict(properties))
    except ValueError:
        return None
    return None if found is None else found.value


def _host(properties: dict[str, str]) -> str:
    """The URI without its password."""
    parts = urlsplit(properties.get("uri", ""))
    return repr(f"{parts.scheme}://{parts.hostname or ''}") if parts.scheme else "none"


def _warehouse(text: str) -> str:
    """A URI as it is, and a folder as one."""
    return text if "://" in text else f"{LOCAL}{_plain(Path(text).absolute())}"


def _plain(path: Path) -> str:
    text = str(path)
    if any(character in text for character in PATH_FORBIDDEN):
        raise Malformed(
            f"{text!r} cannot hold the catalog or the warehouse: its name has one of "
            f"{' '.join(PATH_FORBIDDEN)}, which mean something else in a URI; choose another folder"
        )
    return text


def sqlite_path(uri: str) -> Path:
    """The file that such a URI names."""
    return Path(uri.removeprefix(SQLITE).partition("?")[0]).absolute()


def _prepare_sqlite(path: Path) -> None:
    """Make the file with its tables, durably. Readers and one writer do not wait for each other."""
    disk = RealDisk(path.parent)
    with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)) as database:
        _switch_to_wal(database)
        database.executescript(SQLITE_TABLES)
    disk.sync_directory("")


def _switch_to_wal(database: sqlite3.Connection) -> None:
    """For good. SQLite does not wait for this when the file is busy, as it does for all else; so
    wait for something else, and try again."""
    for attempt in range(SWITCHES_MAX):
        try:
            database.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if attempt == SWITCHES_MAX - 1:
                raise
            database.execute("BEGIN EXCLUSIVE")
            database.execute("ROLLBACK")
        else:
            return


def _jdbc(uri: str) -> dict[str, str]:
    """The URI of SQLAlchemy as that of Java, with the same promises of SQLite."""
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
