"""A process with a log and a source. Reads the folder and the port; SIGUSR1 ends the source as a
crash of its process would, and starts another."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from frazil.connectors.postgres.options import PostgresOptions
from frazil.errors import Unavailable
from tests.connectors.postgres.harness import open_log, opened_again

OPTIONS = PostgresOptions(tables="public.*")


def next_epoch(folder: Path) -> int:
    file = folder / "epoch"
    epoch = int(file.read_text()) + 1 if file.exists() else 1
    file.write_text(str(epoch))
    return epoch


def main(folder: Path, port: str) -> None:
    must_end = False

    def end(*_: object) -> None:
        nonlocal must_end
        must_end = True

    signal.signal(signal.SIGUSR1, end)
    connection = {"host": "127.0.0.1", "port": port, "user": "postgres", "dbname": "postgres"}
    log = open_log(folder / "data")
    print("ready", flush=True)
    while True:
        run = opened_again(log, connection, OPTIONS, next_epoch(folder))
        must_end = False
        try:
            while not must_end:
                run.step(0.02)
        except Unavailable as error:
            print(error, file=sys.stderr)
        finally:
            run.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
