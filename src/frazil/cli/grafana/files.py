"""All files, and writing them."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from frazil.cli.grafana.data_sources import data_sources
from frazil.cli.grafana.kafka_lake import KAFKA_LAKE
from frazil.cli.grafana.logs import LOGS
from frazil.cli.grafana.node import NODE
from frazil.cli.grafana.red import RED
from frazil.disk import RealDisk, make_directories
from frazil.errors import Malformed

DASHBOARDS = (RED, LOGS, NODE, KAFKA_LAKE)
DASHBOARD_FOLDER = "dashboards"
FOLDER_TITLE = "Frazil"


def provisioning_files(
    url: str, token_variable: str | None, dashboards_path: str
) -> dict[str, str]:
    """Return the text of each file by its path. `dashboards_path` is where Grafana finds the folder
    of dashboards."""
    provider = {
        "name": FOLDER_TITLE,
        "folder": FOLDER_TITLE,
        "type": "file",
        "options": {"path": dashboards_path},
    }
    files = {
        "provisioning/datasources/frazil.yaml": _yaml(data_sources(url, token_variable)),
        "provisioning/dashboards/frazil.yaml": _yaml({"apiVersion": 1, "providers": [provider]}),
    }
    for dashboard in DASHBOARDS:
        text = json.dumps(dashboard.content(), indent=2) + "\n"
        files[f"{DASHBOARD_FOLDER}/{dashboard.uid}.json"] = text
    return files


def _yaml(content: object) -> str:
    return str(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))


def write_files(folder: Path, files: dict[str, str]) -> None:
    """Write files below a folder, each atomically. Those that exist are replaced."""
    disk = RealDisk(folder)
    try:
        for path, text in files.items():
            make_directories(disk, str(Path(path).parent))
            temporary = f"{path}.tmp"
            if Path(temporary).name in disk.list(str(Path(path).parent)):
                disk.unlink(temporary)
            file = disk.open(temporary, "create")
            try:
                file.append([text.encode()])
                file.sync()
            finally:
                file.close()
            disk.rename(temporary, path)
    except OSError as error:
        raise Malformed(f"{folder} cannot be written: {error.strerror}") from None
