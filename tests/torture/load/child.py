"""One COPY INTO in a process that may be killed at any moment.

python -m tests.torture.load.child FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.load.loading import Loading

TEXT = "COPY INTO t FROM @s FILE_FORMAT=(TYPE=NDJSON)"


def main() -> None:
    loading = Loading(Path(sys.argv[1]))
    print("ready", flush=True)
    for line in sys.stdin:
        assert line.strip() == "copy"
        print(loading.copy(TEXT).row_count, flush=True)


if __name__ == "__main__":
    main()
