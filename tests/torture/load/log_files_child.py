"""Loads files into a log, in a process that may be killed at any moment.

python -m tests.torture.load.log_files_child FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path
from unittest import mock

from frazil.load.into_log import requests, staged_load
from tests.load.into_log.log_loading import opened_loading

TEXT = "COPY INTO logs FROM @s FILE_FORMAT=(TYPE=TEXT)"


def main() -> None:
    small = (
        mock.patch.object(requests, "REQUEST_ROWS", 20),
        mock.patch.object(staged_load, "STEP_BYTES", 1024),
    )
    with small[0], small[1], opened_loading(Path(sys.argv[1])) as loading:
        print("ready", flush=True)
        for line in sys.stdin:
            assert line.strip() == "copy"
            print(loading.copy(TEXT).row_count, flush=True)


if __name__ == "__main__":
    main()
