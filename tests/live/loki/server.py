"""Loki as a separate process on loopback, with everything in a temporary folder."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.live.loki.programs import program
from tests.live.server_process import START_SECONDS_MAX, free_port, server_process

POLL_S = 1.0


@contextmanager
def loki(folder: Path) -> Iterator[str]:
    """Run Loki; yields its URL once it is ready."""
    port, grpc_port = free_port(), free_port()
    config = {
        "auth_enabled": False,
        "server": {
            "http_listen_address": "127.0.0.1",
            "http_listen_port": port,
            "grpc_listen_address": "127.0.0.1",
            "grpc_listen_port": grpc_port,
        },
        "common": {
            "instance_addr": "127.0.0.1",
            "path_prefix": str(folder),
            "storage": {"filesystem": {"chunks_directory": str(folder / "chunks")}},
            "replication_factor": 1,
            "ring": {"kvstore": {"store": "inmemory"}},
        },
        "schema_config": {
            "configs": [
                {
                    "from": "2020-01-01",
                    "store": "tsdb",
                    "object_store": "filesystem",
                    "schema": "v13",
                    "index": {"prefix": "index_", "period": "24h"},
                }
            ]
        },
        "limits_config": {
            "reject_old_samples": False,
            "allow_structured_metadata": True,
            "volume_enabled": True,
            "max_query_series": 5000,
        },
        "analytics": {"reporting_enabled": False},
    }
    path = folder / "loki.json"  # JSON is YAML
    path.write_text(json.dumps(config), encoding="utf-8")
    command: list[str | Path] = [program("loki"), f"-config.file={path}"]
    with server_process(command, port, folder / "loki.txt"):
        url = f"http://127.0.0.1:{port}"
        _wait_until_ready(url)
        yield url


def _wait_until_ready(url: str) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while True:
        try:
            with urllib.request.urlopen(f"{url}/ready", timeout=POLL_S) as response:
                if response.status == 200:
                    return
        except OSError:
            pass
        assert time.monotonic() < deadline, "Loki is not ready"
        time.sleep(POLL_S)
