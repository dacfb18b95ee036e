"""fake-gcs-server as a separate process on loopback: keeps objects in memory."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from tests.clients.programs import require, run_step
from tests.live.server_process import built_or_skipped, free_port, server_process

SOURCES = Path(__file__).parent / "go"
GO = (1, 26)
"""As in `go/go.mod`."""
PROGRAM = "github.com/fsouza/fake-gcs-server"


class GcsServer:
    """A running server."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint

    def make_bucket(self, name: str) -> None:
        self._post("/storage/v1/b?project=tests", json.dumps({"name": name}).encode())

    def put(self, bucket: str, key: str, data: bytes) -> None:
        """Write an object by the JSON API: the server refuses uploads of the XML API's clients."""
        target = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(key, safe='')}"
        self._post(target, data)

    @property
    def account_key(self) -> str:
        """Return the key of a service account that needs no login."""
        return json.dumps(
            {
                "gcs_base_url": self.endpoint,
                "disable_oauth": True,
                "client_email": "",
                "private_key": "",
                "private_key_id": "",
            }
        )

    def _post(self, path: str, body: bytes) -> None:
        headers = {"Content-Type": "application/octet-stream"}
        request = urllib.request.Request(f"{self.endpoint}{path}", body, headers, method="POST")
        with urllib.request.urlopen(request):
            pass


@contextmanager
def gcs_server(folder: Path) -> Iterator[GcsServer]:
    """Run the server. Skips without Go."""
    require("Go", ["go", "env", "GOVERSION"], GO)

    def build(target: Path) -> None:
        command: list[str | Path] = ["go", "build", "-mod=readonly", "-buildvcs=false", "-o"]
        run_step([*command, target, PROGRAM], SOURCES, {"CGO_ENABLED": "0"})

    sources = [SOURCES / "go.mod", SOURCES / "go.sum"]
    program = built_or_skipped("fake-gcs-server", sources, build) / "fake-gcs-server"
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    options = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
    options += [
        "-backend",
        "memory",
        "-external-url",
        endpoint,
        "-public-host",
        f"127.0.0.1:{port}",
    ]
    with server_process([program, *options], port, folder / "gcs.output"):
        yield GcsServer(endpoint)
