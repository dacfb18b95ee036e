"""Runs the clients with a node, prints the table and writes it into docs/kafka.md."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.clients.node import COMMAND, Node
from tests.ingest.certificates import make_certificates
from tests.live.kafka_port.matrix.clients import (
    PASSWORD,
    USER,
    Nodes,
    TableClient,
    table_clients,
)
from tests.live.kafka_port.matrix.table import (
    COLUMNS,
    FAILED,
    NO,
    PAGE,
    YES,
    Row,
    render,
    with_table,
)


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.live.kafka_port.matrix")
    parser.add_argument("clients", nargs="*", help="default: all, and the table is written")
    chosen = parser.parse_args(words).clients
    clients = table_clients()
    if unknown := set(chosen) - set(clients):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(clients)}")
    with tempfile.TemporaryDirectory() as folder, _nodes(Path(folder)) as nodes:
        rows = [row_of(clients[name], nodes) for name in chosen or clients]
    sys.stdout.write(render(rows))
    if not chosen:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(with_table(page, rows), encoding="utf-8")
    return int(any(FAILED in row.cells.values() for row in rows))


def row_of(client: TableClient, nodes: Nodes) -> Row:
    """Run the checks of a client."""
    cells = dict.fromkeys(COLUMNS, NO)
    for column, check in client.checks.items():
        try:
            check(nodes)
        except Exception as error:  # noqa: BLE001 whatever a client raises is what it does
            sys.stderr.write(f"{client.name}, {column}: {error!r}\n")
            cells[column] = FAILED
        else:
            cells[column] = YES
    return Row(client=client.name, cells=cells)


@contextmanager
def _nodes(folder: Path) -> Iterator[Nodes]:
    certificates = make_certificates(folder)
    tokens = folder / "tokens"
    tokens.write_text(f"{PASSWORD}\n", encoding="utf-8")
    tokens.chmod(0o600)
    secured = {
        "kafka.scram": "true",
        "ingest.token_file": tokens,
        "ingest.tls_certificate_file": certificates.server_certificate,
        "ingest.tls_key_file": certificates.server_key,
    }
    more = [word for name, each in secured.items() for word in ("--set", f"{name}={each}")]
    with (
        Node(folder / "plain", "--set", "lake.enabled=false") as plain,
        Node(folder / "secure", "--set", "lake.enabled=false", *more) as secure,
    ):
        command = [*COMMAND, "users", "add", USER, "--data", str(secure.folder)]
        subprocess.run(command, input=f"{PASSWORD}\n", text=True, check=True)
        yield Nodes(
            plain=f"127.0.0.1:{plain.kafka_port}",
            secure=f"127.0.0.1:{secure.kafka_port}",
            authority=certificates.authority,
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
