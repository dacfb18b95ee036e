"""Two threads copy files into a keyed table, a third changes the same keys, in a process that may
be killed at any moment.

python -m tests.torture.load.keyed_child FOLDER
"""

from __future__ import annotations

import itertools
import sys
import threading
from pathlib import Path

import pyarrow as pa

from tests.load.keyed_loading import KeyedLoading
from tests.load.loading import Loading

PARTITIONS = 3
KEYS = 100
OTHER = "other"


def open_keyed(folder: Path) -> KeyedLoading:
    return KeyedLoading(Loading(folder), folder / "keyed", partitions=PARTITIONS)


def main() -> None:
    there = open_keyed(Path(sys.argv[1]))
    there.loads.start()
    print("ready", flush=True)

    def copy() -> None:
        for _ in range(2):
            there.copy()
        print("copied", flush=True)

    def change() -> None:
        for number in itertools.count():
            ids = [(number * 7 + n) % KEYS for n in range(5)]
            there.upsert(pa.table({"id": ids, "name": [OTHER] * 5}))

    for work in (copy, copy, change):
        threading.Thread(target=work, daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
