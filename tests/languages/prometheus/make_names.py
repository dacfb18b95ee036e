"""Make names.json: names translated by Prometheus' own translator, in Go.

python -m tests.languages.prometheus.make_names
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
VECTORS = HERE / "names.json"
RANDOM_COUNT = 600
NAMES = (
    *("http.server.request.duration", "requests", "requests.total", "total.requests", "a__b"),
    *("queue.size", "cpu.ratio.used", "1st.value", "__x__", "_x", "日本", "é", "a:b", "_", "9"),
    *("bytes.read", "process.seconds", "jvm.gc.pause_milliseconds", "", "__", "a.b-c/d e", "_1"),
)
UNITS = (
    *("", "1", "s", "ms", "By", "%", "{request}", "{request}/s", "By/s", "1/s", "m/s", "Cel"),
    *("foo", "foo__bar", "foo/bar", " s ", "/s", "s/", "_", "d", "KiBy/min", "MiBy/h", "a/b/c"),
    *("foo_/s", "By/{x}", "°C", "per_", "x/_", "s/mo", "s/y", "_x_"),
)
TYPES = (
    *(("gauge", False), ("sum", True), ("sum", False), ("histogram", False)),
    *(("exponential_histogram", False), ("summary", False)),
)
LETTERS = "aZ09_.:-/ é_"


def inputs() -> list[dict[str, Any]]:
    rand = random.Random(24)
    given = [(name, unit, rand.choice(TYPES)) for name in NAMES for unit in UNITS]
    for _ in range(RANDOM_COUNT):
        name = "".join(rand.choices(LETTERS, k=rand.randint(1, 8)))
        unit = "".join(rand.choices([*LETTERS, "s", "By", "/", "1"], k=rand.randint(0, 3)))
        given.append((name, unit, rand.choice(TYPES)))
    return [
        {"Name": name, "Unit": unit, "Type": kind, "Monotonic": is_monotonic}
        for name, unit, (kind, is_monotonic) in given
    ]


def main() -> None:
    given = inputs()
    made = subprocess.run(
        ["go", "run", "."],
        cwd=HERE / "go",
        env={**os.environ, "GOFLAGS": "-mod=mod"},
        input="\n".join(map(json.dumps, given)),
        text=True,
        capture_output=True,
        check=True,
    )
    outputs = map(json.loads, made.stdout.splitlines())
    rows = [[*one.values(), *other.values()] for one, other in zip(given, outputs, strict=True)]
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    VECTORS.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
