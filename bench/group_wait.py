"""Does waiting before a group commit pay? Backs docs/decisions/0001.

`ours` syncs what is queued; `peer` is the same log with a writer that waits 5 ms first. Prints one
JSON line last; exits 1 if waiting wins by more than a tenth.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from unittest import mock

from bench.log import append_ours, open_log, scratch_folder
from frazil.log.writer import Writer

WAIT_S = 0.005
ROUNDS = 3
COUNTS = {1: 200, 8: 1_000, 64: 4_000}
"""Writers -> appends per round."""
BAR = 0.9


def rate(writers: int, *, waits: bool) -> float:
    step = Writer.step

    def waiting_step(writer: Writer, *own: object) -> int:
        time.sleep(WAIT_S)
        return step(writer, *own)

    patch = mock.patch.object(Writer, "step", waiting_step if waits else step)
    with scratch_folder() as folder, open_log(folder) as log, patch:
        return append_ours(log, bytes(300), COUNTS[writers], writers)[0]


def main() -> int:
    cases = []
    for writers in COUNTS:
        ours = statistics.median(rate(writers, waits=False) for _ in range(ROUNDS))
        peer = statistics.median(rate(writers, waits=True) for _ in range(ROUNDS))
        cases.append(
            {
                "case": f"append 300 bytes, {writers} writers",
                "ours": round(ours, 1),
                "peer": round(peer, 1),
                "ratio": round(ours / peer, 3),
                "bar": BAR,
                "ok": ours / peer >= BAR,
                "unit": "appends/s",
            }
        )
    print(json.dumps({"bench": "group_wait", "cases": cases}))
    return 0 if all(case["ok"] for case in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
