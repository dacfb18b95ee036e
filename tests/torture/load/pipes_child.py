"""A data folder whose pipes run, in a process that may be killed at any moment.

python -m tests.torture.load.pipes_child FOLDER
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.load.pipes.piping import open_piping

PIPES = (
    "CREATE OR REPLACE PIPE every SCHEDULE '1 second' AS "
    "COPY INTO t FROM (SELECT n, n * 2 AS twice FROM @s/every WHERE n >= 0) VALIDATE (UNIQUE (n))",
    "CREATE OR REPLACE PIPE fresh ON NEW FILES AS COPY INTO t (n BIGINT, twice BIGINT) "
    "FROM (SELECT n, n + n AS twice FROM @s/fresh) "
    "VALIDATE (NOT EMPTY, CHECK (SELECT n FROM new_rows WHERE twice <> 2 * n))",
)


def main() -> None:
    with open_piping(Path(sys.argv[1])) as piping:
        if not piping.executor.definitions.of_kind("pipe"):
            for text in PIPES:
                piping.execute(text)
        print("ready", flush=True)
        while True:
            time.sleep(1)


if __name__ == "__main__":
    main()
