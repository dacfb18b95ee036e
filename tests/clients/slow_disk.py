"""`python -m tests.clients.slow_disk MS up ...`: `frazil` on a disk whose syncs take MS longer."""

from __future__ import annotations

import sys
import time

from frazil.cli import main
from frazil.disk import files


def slow_down(milliseconds: float) -> None:
    sync = files.RealFile.sync

    def slow_sync(file: files.RealFile) -> None:
        time.sleep(milliseconds / 1000)
        sync(file)

    vars(files)["RealFile"].sync = slow_sync


if __name__ == "__main__":
    slow_down(float(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
