"""Each third-party library is imported only by the rooms that own it."""

from __future__ import annotations

import re
import sys
import tomllib

import pytest

from tests.house.sources import ROOT, Source, house, imports_of, report

OWNERS: dict[str, set[str] | None] = {
    "google_crc32c": {"disk", "log", "hot", "tables", "load"},
    "cramjam": {"log"},
    "msgspec": {
        "model",
        "status",
        "processes",
        "settings",
        "reader",
        "node",
        "results",
        "log",
        "ingest",
        "kafka",
        "hot",
        "tables",
        "lake",
        "query",
        "languages",
        "backup",
        "removal",
        "serve",
        "config",
        "definitions",
        "load",
        "registry",
        "connectors",
        "rules",
        "client",
        "appender",
        "otlp_files",
    },
    "blake3": {"ingest"},
    "google": {"ingest", "otlp_client", "otlp_files", "registry", "serve"},
    "grpc": {"ingest", "serve"},
    "grpc_health": {"ingest"},
    "grpc_reflection": {"ingest"},
    "httptools": {"httpd"},
    "isal": {"log", "ingest", "load"},
    "re2": {"ingest", "kafka", "load", "query", "languages", "registry", "rules"},
    "llvmlite": {"model", "ingest", "query"},
    "numba": {"model", "ingest", "hot", "query", "languages"},
    "numpy": {"model", "log", "ingest", "hot", "tables", "lake", "query", "languages", "load"},
    "opentelemetry": {"self_tracing", "ingest", "otlp_client", "otlp_files"},
    "shtab": {"cli"},
    "uvloop": {"cli", "reader"},
    "zstandard": {"ingest", "load", "otlp_files"},
    "confluent_kafka": {"lake", "cli"},
    "py4j": {"lake"},
    "pyspark": {"lake"},
    "pyiceberg": {"lake", "load"},
    "fastavro": {"lake", "load"},
    "obstore": {"load"},
    "pydantic": {"lake"},
    "requests": {"lake"},
    "sqlalchemy": {"lake"},
    "datafusion": {"lake", "query"},
    "promql_parser": {"languages"},
    "psycopg": {"connectors"},
    "yaml": {"rules", "cli"},
    "pyarrow": None,
}
"""Module to the rooms that may import it; None means every room."""

MODULES = {
    "google_re2": "re2",
    "googleapis_common_protos": "google",
    "grpcio": "grpc",
    "grpcio_health_checking": "grpc_health",
    "grpcio_reflection": "grpc_reflection",
    "opentelemetry_proto": "opentelemetry",
    "protobuf": "google",
    "pyyaml": "yaml",
}
"""Distributions whose module has another name."""


def dependency_findings(source: Source) -> list[str]:
    """Imports of a library by a room that does not own it."""
    findings = []
    for found in imports_of(source):
        library = found.module.partition(".")[0]
        if library == "frazil" or library in sys.stdlib_module_names:
            continue
        if library not in OWNERS:
            findings.append(f"{found.where}: {library} has no owner; give it one in {__name__}")
            continue
        owners = OWNERS[library]
        if owners is not None and source.room not in owners:
            findings.append(
                f"{found.where}: {source.room} imports {library},"
                f" which belongs to {', '.join(sorted(owners))}"
            )
    return findings


@pytest.mark.parametrize(
    ("module", "text", "wanted"),
    [
        ("frazil.log.format.batch", "import cramjam\nfrom google_crc32c import value", ""),
        ("frazil.config", "import msgspec", ""),
        ("frazil.hot.tier", "import pyarrow as pa\nimport pyarrow.compute", ""),
        ("frazil.model.time", "import time\nfrom collections.abc import Iterator", ""),
        ("frazil.kafka.wire", "from cramjam import snappy", "belongs to log"),
        ("frazil.query.run", "def f():\n    import pyspark.sql", "belongs to lake"),
        ("frazil.serve.http.app", "import flask", "has no owner"),
        ("frazil.log.writer", "from tests.sim import SimDisk", "has no owner"),
    ],
)
def test_the_rule_sees(module: str, text: str, wanted: str) -> None:
    """A library outside its room, or without an owner, is found."""
    findings = dependency_findings(Source(module=module, text=text))
    assert len(findings) == (1 if wanted else 0)
    assert all(wanted in finding for finding in findings)


def test_every_dependency_stays_with_its_owner() -> None:
    """Replacing a library means changing one room."""
    findings = [line for source in house() for line in dependency_findings(source)]
    assert not findings, report(findings)


def test_every_declared_dependency_has_an_owner() -> None:
    """Every declared dependency is used by a room."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in project["dependencies"]]
    modules = [name.replace("-", "_") for name in names]
    assert {MODULES.get(module, module) for module in modules} <= OWNERS.keys()
