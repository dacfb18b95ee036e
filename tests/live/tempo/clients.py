"""Sends what clients of Tempo and Jaeger send, and has the answers decoded by their own types.

python -m tests.live.tempo.clients

Needs Go. The first run downloads and builds for some minutes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.clients.programs import built_once, require, run_step
from tests.serve.doors.trace_clients import jaeger_requests, tempo_requests
from tests.serve.served import Served, served
from tests.serve.shop import send_shop

SOURCES = Path(__file__).parent / "go"
GO = (1, 26)
"""As in `go/go.mod`."""
RUN_SECONDS_MAX = 180


def program() -> Path:
    """Return the program; its modules are those of `go.sum`, by hash."""
    require("Go", ["go", "env", "GOVERSION"], GO)
    sources = [SOURCES / name for name in ("go.mod", "go.sum", "main.go")]

    def build(folder: Path) -> None:
        command: list[str | Path] = ["go", "build", "-mod=readonly", "-buildvcs=false"]
        run_step([*command, "-o", folder / "decode", "."], SOURCES, {"CGO_ENABLED": "0"})

    return built_once("tempo-go", sources, build) / "decode"


def decoded(there: Served, trace_id: str) -> list[dict[str, Any]]:
    """Return what the program says of each request."""
    requests = [*tempo_requests(trace_id), *jaeger_requests(trace_id)]
    lines = [
        json.dumps({"as": each.reads, "url": there.url + each.path, "accept": each.accept})
        for each in requests
    ]
    done = subprocess.run(
        [program()],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, served(Path(folder) / "data") as there:
        sent = send_shop(
            there.rooms.otlp.http_port, lambda text: there.embedded.sql(text).fetchall()
        )
        results = decoded(there, sent.spans[0].record.trace_id.hex())
    failed = [each for each in results if each["error"] or not each["count"]]
    for each in failed:
        sys.stdout.write(f"{each['as']} {each['url']}: {each['error'] or 'nothing in it'}\n")
    good = len(results) - len(failed)
    sys.stdout.write(f"{good} of {len(results)} answers were decoded and are not empty\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
