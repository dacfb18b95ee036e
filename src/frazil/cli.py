"""The command `frazil`: one function per verb. What is heavy is imported where it is needed."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frazil import __version__
from frazil.errors import FrazilError, Malformed

if TYPE_CHECKING:
    from frazil.config import Config
    from frazil.lake import Appended, Maintained

FAILED = 1
WRONG_USE = 2
GiB = 1024**3
MB = 1_000_000

INGEST_FLAGS = {
    "host": "host",
    "otlp_grpc_port": "grpc_port",
    "otlp_http_port": "http_port",
    "tls_certificate": "tls_certificate_file",
    "tls_key": "tls_key_file",
    "tls_client_ca": "tls_client_ca_file",
    "token_file": "token_file",
    "insecure": "insecure",
    "cors_origin": "cors_origins",
}
"""Flag to setting."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb. 0 is well, 1 is a failure, 2 is a wrong use or wrong settings."""
    options = parser().parse_args(arguments)
    try:
        return int(options.verb(options))
    except Malformed as error:
        print(f"frazil: {error}", file=sys.stderr)
        return WRONG_USE
    except FrazilError as error:
        print(f"frazil: {error}", file=sys.stderr)
        return FAILED


def parser() -> argparse.ArgumentParser:
    """What the command understands."""
    made = argparse.ArgumentParser(prog="frazil", description="Telemetry, durable at once.")
    made.add_argument("--version", action="version", version=f"frazil {__version__}")
    verbs = made.add_subparsers(required=True, metavar="VERB")

    up = verbs.add_parser("up", help="run a node: OTLP in, the log on disk")
    up.set_defaults(verb=up_verb)
    add = up.add_argument
    add("--config", metavar="FILE", help="settings in TOML; flags are stronger")
    add("--data", metavar="DIR", help="where everything is kept (data)")
    add("--host", help="address to listen on (127.0.0.1)")
    add("--otlp-grpc-port", type=int, metavar="N", help="0 is any free port (4317)")
    add("--otlp-http-port", type=int, metavar="N", help="0 is any free port (4318)")
    add("--tls-certificate", metavar="FILE", help="PEM; with --tls-key")
    add("--tls-key", metavar="FILE", help="PEM, without a password")
    add("--tls-client-ca", metavar="FILE", help="clients must show a certificate of these")
    add("--token-file", metavar="FILE", help="clients must send one of these tokens, one a line")
    add("--insecure", action="store_true", default=None, help="any address without TLS or token")
    add("--cors-origin", action="append", metavar="ORIGIN", help="pages that may send; repeatable")
    add("--json", action="store_true", help="one line of JSON once the node accepts")

    flush = verbs.add_parser("flush", help="bring all that a data folder holds into its tables")
    flush.set_defaults(verb=flush_verb)
    flush.add_argument("--config", metavar="FILE", help="settings in TOML; flags are stronger")
    flush.add_argument("--data", metavar="DIR", help="the folder, which no node may use now (data)")
    flush.add_argument("--json", action="store_true", help="one line of JSON per commit")

    _add_appender(verbs.add_parser("appender", help="bring what a Kafka holds into tables"))
    pyspark = verbs.add_parser("pyspark", help="PySpark over a data folder: a shell, or a script")
    pyspark.set_defaults(verb=pyspark_verb)
    pyspark.add_argument("--config", metavar="FILE", help="settings in TOML; flags are stronger")
    pyspark.add_argument("--data", metavar="DIR", help="the folder; a node may be using it (data)")
    pyspark.add_argument(
        "--settings", action="store_true", help="print Spark's settings, for spark-submit"
    )
    pyspark.add_argument("script", nargs="?", metavar="SCRIPT", help="a program that has `spark`")
    pyspark.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="its arguments")
    maintain = verbs.add_parser("maintain", help="join small files of the tables, and tidy up")
    maintain.set_defaults(verb=maintain_verb)
    add = maintain.add_argument
    add("--config", metavar="FILE", help="settings in TOML; flags are stronger")
    add("--data", metavar="DIR", help="the folder, which no node may use now (data)")
    add("--json", action="store_true", help="one line of JSON per table")

    warm = verbs.add_parser("warm", help="compile and fetch what no start should have to wait for")
    warm.set_defaults(verb=warm_verb)
    return made


def _add_appender(appender: argparse.ArgumentParser) -> None:
    appender.set_defaults(verb=appender_verb)
    add = appender.add_argument
    add("--config", metavar="FILE", help="settings in TOML, also passwords; flags are stronger")
    add("--data", metavar="DIR", help="a folder of its own for what is temporary (data)")
    add("--kafka", metavar="HOST:PORT", help="one broker or more, with commas between")
    add("--catalog", metavar="URI", help="of the Iceberg catalog; an SQLite file in DIR without")
    add("--warehouse", metavar="URI", help="where tables are kept; a folder in DIR without")
    add("--master", metavar="URL", help="where Spark runs its tasks (local[2])")
    add("--skip-lost", action="store_true", help="go on without offsets Kafka has removed already")
    add("--once", action="store_true", help="end when all that is there now is in the tables")
    add("--json", action="store_true", help="one line of JSON per commit")


def up_verb(options: argparse.Namespace) -> int:
    """Run a node until it is told to stop."""
    import uvloop

    from frazil.config import load
    from frazil.model import SystemClock, SystemRand
    from frazil.node import Ready, run

    config = load(options.config, _overrides(options))
    _log_to_stderr()

    def say(ready: Ready) -> None:
        where = {
            "otlp_grpc_port": ready.grpc_port,
            "otlp_http_port": ready.http_port,
            "data": str(Path(config.data).absolute()),
        }
        if options.json:
            print(json.dumps(where), flush=True)
            return
        scheme = "https" if config.ingest.tls_certificate_file else "http"
        host = config.ingest.host
        print(
            f"Frazil {__version__} is up.\n"
            f"  OTLP/gRPC  {scheme}://{host}:{ready.grpc_port}\n"
            f"  OTLP/HTTP  {scheme}://{host}:{ready.http_port}\n"
            f"  data       {where['data']}, at most {config.log.disk_bytes_max / GiB:.1f} GiB\n"
            f"  Iceberg    {_lake_line(config, ready.lake is not None)}\n\n"
            "Point an application here:\n"
            f"  export OTEL_EXPORTER_OTLP_ENDPOINT={scheme}://{host}:{ready.http_port}\n"
            "  export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf\n\n"
            "Ctrl-C stops it.",
            flush=True,
        )

    uvloop.run(run(config, clock=SystemClock(), rand=SystemRand(), ready=say))
    return 0


def _lake_line(config: Config, is_there: bool) -> str:
    """Where tables are filled, or why there are none."""
    if not config.lake.enabled:
        return "off (lake.enabled = false)"
    if not is_there:
        return "not installed (pip install 'frazil[lake]')"
    own = Path(config.data).absolute() / "lake"
    where = f"catalog {config.lake.catalog_name}" if config.lake.catalog else own
    return f"{where}, at least every {config.lake.flush_age_ms / 1000:g} s"


def flush_verb(options: argparse.Namespace) -> int:
    """Bring all that is in the log into the tables, and say what was new."""
    from frazil.config import load
    from frazil.embedded import flush_folder

    overrides = {} if options.data is None else {"data": options.data}
    done = flush_folder(load(options.config, overrides))
    for each in done:
        _say_appended(each, options.json)
    if not done and not options.json:
        print("nothing new")
    return 0


def _say_appended(done: Appended, is_json: bool) -> None:
    if is_json:
        print(json.dumps(done.to_dict()), flush=True)
    else:
        print(f"{done.table}: {done.row_count} rows, {done.dead_count} dead letters", flush=True)


def appender_verb(options: argparse.Namespace) -> int:
    """Fill tables from a Kafka, until it is told to stop."""
    from frazil.appender import run
    from frazil.config import load
    from frazil.model import SystemClock, SystemRand

    config = load(options.config, _appender_overrides(options))
    _log_to_stderr()
    run(
        config,
        is_once=options.once,
        tell=lambda done: _say_appended(done, options.json),
        clock=SystemClock(),
        rand=SystemRand(),
    )
    return 0


def _appender_overrides(options: argparse.Namespace) -> dict[str, Any]:
    kafka: dict[str, Any] = {} if options.kafka is None else {"brokers": options.kafka}
    if options.skip_lost:
        kafka["skip_lost"] = True
    given = {
        "kafka": kafka or None,
        "catalog": None if options.catalog is None else {"uri": options.catalog},
        "warehouse": options.warehouse,
        "master": options.master,
    }
    lake = {setting: value for setting, value in given.items() if value is not None}
    overrides: dict[str, Any] = {"lake": lake} if lake else {}
    if options.data is not None:
        overrides["data"] = options.data
    return overrides


def pyspark_verb(options: argparse.Namespace) -> int:
    """Open a shell with a session, or run a script in one."""
    from frazil import lake
    from frazil.config import load

    config = load(options.config, {} if options.data is None else {"data": options.data})
    folder = Path(config.data)
    if options.settings:
        for name, value in sorted(lake.user_settings(folder, config.lake).items()):
            print(f"{name} {value}")
        return 0
    spark = lake.session(folder, config.lake)
    try:
        if options.script is not None:
            lake.run_script(spark, options.script, options.arguments)
        else:
            lake.open_shell(spark, folder.absolute(), config.lake)
    finally:
        spark.stop()
    return 0


def maintain_verb(options: argparse.Namespace) -> int:
    """Do to the tables all that can be done, and say what that was. 1 when something could not."""
    from frazil.config import load
    from frazil.embedded import maintain_folder

    overrides = {} if options.data is None else {"data": options.data}
    done = maintain_folder(load(options.config, overrides))
    if options.json:
        for each in done:
            print(json.dumps(each.to_dict()))
    else:
        _print_maintained(done)
    return FAILED if any(each.trouble for each in done) else 0


def _print_maintained(done: Sequence[Maintained]) -> None:
    heads = ("table", "files", "MB", "manifests", "snapshots", "removed", "orphans", "tags")
    lines = [heads]
    for each in done:
        tags = [*each.tags_made, *(f"no more {tag}" for tag in each.tags_dropped)]
        lines.append(
            (
                each.table,
                f"{each.files_joined} -> {each.files_made}" if each.files_joined else "-",
                f"{each.bytes_joined / MB:.1f} -> {each.bytes_made / MB:.1f}"
                if each.files_joined
                else "-",
                f"{each.manifests_joined} joined" if each.manifests_joined else "-",
                f"{each.snapshots_expired} expired" if each.snapshots_expired else "-",
                f"{each.files_removed} files" if each.files_removed else "-",
                f"{each.orphans_removed} files" if each.orphans_removed else "-",
                ", ".join(tags) or "-",
            )
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        row = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        print("  ".join(row).rstrip())
    for each in done:
        for trouble in each.trouble:
            print(f"frazil: {each.table}: {trouble}", file=sys.stderr)


def warm_verb(_: argparse.Namespace) -> int:
    """Compile and fetch ahead of time."""
    from frazil import ingest, lake, query
    from frazil.model import columns

    ingest.warm()
    columns.warm()
    query.warm()
    lake.warm()
    return 0


def _overrides(options: argparse.Namespace) -> dict[str, Any]:
    given = {setting: getattr(options, flag) for flag, setting in INGEST_FLAGS.items()}
    ingest = {setting: value for setting, value in given.items() if value is not None}
    overrides: dict[str, Any] = {"ingest": ingest} if ingest else {}
    if options.data is not None:
        overrides["data"] = options.data
    return overrides


class _Facts(logging.Formatter):
    """A line: time, level, message, and the facts behind it."""

    KNOWN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}

    def format(self, record: logging.LogRecord) -> str:
        facts = {k: v for k, v in record.__dict__.items() if k not in self.KNOWN}
        line = super().format(record)
        return line + "".join(f" {name}={value!r}" for name, value in facts.items())


def _log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_Facts("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    for chatty in ("pyiceberg", "py4j"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
