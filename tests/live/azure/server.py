"""Azurite as a separate process on loopback: checks signatures, keeps blobs in memory."""

from __future__ import annotations

import base64
import hashlib
import hmac
import shutil
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path

from tests.clients.programs import NODE_JS, require, run_step
from tests.live.server_process import built_or_skipped, free_port, server_process

HERE = Path(__file__).parent
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Azurite's account, which its documentation names."""
VERSION = "2021-08-06"


@contextmanager
def azure_server(folder: Path, container: str) -> Iterator[str]:
    """Run Azurite with one container; yields the endpoint of the account. Skips without npm."""
    require("Node.js", ["node", "--version"], NODE_JS)
    require("npm", ["npm", "--version"], (7,))
    sources = [HERE / name for name in ("package.json", "package-lock.json")]

    def install(target: Path) -> None:
        for source in sources:
            shutil.copy(source, target)
        run_step(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], target)

    program = built_or_skipped("azurite", sources, install) / "node_modules/.bin/azurite-blob"
    port = free_port()
    options = ["--inMemoryPersistence", "--skipApiVersionCheck", "--silent"]
    options += ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    with server_process([program, *options], port, folder / "azurite.output"):
        endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
        _make_container(endpoint, container)
        yield endpoint


def _make_container(endpoint: str, name: str) -> None:
    """Create a container. Stages never do, so there is no client of ours that could."""
    date = formatdate(usegmt=True)
    lines = ["PUT", *[""] * 11, f"x-ms-date:{date}", f"x-ms-version:{VERSION}"]
    # The account is in the path of an emulator, and therefore twice in the resource.
    lines += [f"/{ACCOUNT}/{ACCOUNT}/{name}", "restype:container"]
    signed = hmac.new(base64.b64decode(KEY), "\n".join(lines).encode(), hashlib.sha256).digest()
    headers = {
        "x-ms-date": date,
        "x-ms-version": VERSION,
        "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(signed).decode()}",
    }
    url = f"{endpoint}/{name}?restype=container"
    with urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers)):
        pass
