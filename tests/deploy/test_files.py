"""The files that put a node into a container, a cluster or a service manager fit the program. No
container engine runs here: what an image build would do is done in a folder."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from frazil import __version__, cli
from frazil.config import Config

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "frazil"
UNIT = ROOT / "deploy" / "systemd" / "frazil.service"
DOCKERFILE = (ROOT / "Dockerfile").read_text()
USER = "10001"
CONFIG = Config()
PORTS = {
    CONFIG.ingest.grpc_port,
    CONFIG.ingest.http_port,
    CONFIG.serve.http_port,
    CONFIG.kafka.port,
    CONFIG.flight.port,
}


def instructions(name: str) -> list[str]:
    """Return the arguments of each such instruction of the Dockerfile."""
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE, flags=re.MULTILINE).replace("\\\n", " ")
    return re.findall(rf"^{name} +(.*)$", text, re.MULTILINE)


def parse_up(arguments: list[str]) -> None:
    """Check that `frazil up` knows these arguments."""
    assert cli.parser().parse_args(["up", *arguments]).run


def yaml_of(path: Path) -> Any:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load(path.read_text())


def is_ignored(path: str) -> bool:
    """Apply .dockerignore: the last pattern that matches decides."""
    ignored = False
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!").removeprefix("**/")
        parts = Path(path).parts
        prefixes = ["/".join(parts[: end + 1]) for end in range(len(parts))]
        names = parts if "**/" in line else prefixes
        if line and not line.startswith("#") and any(fnmatch(name, pattern) for name in names):
            ignored = not line.startswith("!")
    return ignored


def test_an_image_build_gets_a_wheel_with_the_page(tmp_path: Path) -> None:
    """From the files that the Dockerfile copies, and .dockerignore lets through."""
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if tracked.returncode:
        pytest.skip("not a git repository")
    copied = [line.split() for line in instructions("COPY") if "--from" not in line]
    sources = [source for words in copied for source in words[:-1]]
    for path in tracked.stdout.splitlines():
        is_copied = any(path == source or path.startswith(f"{source}/") for source in sources)
        if is_copied and not is_ignored(path) and (ROOT / path).is_file():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, tmp_path / path)
    assert {path.name for path in tmp_path.iterdir()} == {
        source.split("/")[0] for source in sources
    }
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "dist").iterdir()
    names = ZipFile(wheel).namelist()
    assert "frazil/serve/built/index.html" in names
    assert "frazil/serve/built/assets/index.js" in names
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests")]


def test_the_image_runs_a_node_as_another_user_than_root() -> None:
    assert instructions("USER") == [f"{USER}:{USER}"]
    assert f"--uid {USER}" in DOCKERFILE
    (entry,) = map(json.loads, instructions("ENTRYPOINT"))
    assert entry[:4] == ["tini", "--", "frazil", "up"]
    parse_up(entry[4:])
    assert {int(port) for port in instructions("EXPOSE")[0].split()} == PORTS
    (health,) = instructions("HEALTHCHECK")
    code = json.loads(health.partition("CMD ")[2])[2]
    compile(code, "HEALTHCHECK", "exec")
    assert f":{Config().serve.http_port}/livez" in code


def test_compose_publishes_the_ports_to_this_machine_only() -> None:
    (service,) = yaml_of(ROOT / "compose.yaml")["services"].values()
    parse_up(service["command"])
    assert set(service["ports"]) == {f"127.0.0.1:{port}:{port}" for port in PORTS}
    assert service["volumes"] == ["data:/data"]


def test_the_chart_is_of_this_version() -> None:
    chart = yaml_of(CHART / "Chart.yaml")
    assert chart["appVersion"] == __version__
    text = (CHART / "templates" / "statefulset.yaml").read_text()
    parse_up(re.findall(r"^ +- (--\S+)$", text, re.MULTILINE))
    assert set(map(int, re.findall(r"containerPort: (\d+)", text))) == PORTS
    assert f"runAsUser: {USER}" in text


def test_the_unit_is_valid(tmp_path: Path) -> None:
    """By systemd's own check, if there is one; of a program that exists."""
    text = UNIT.read_text()
    (command,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    assert cli.parser().parse_args(shlex.split(command)[1:]).run
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed: the unit is not verified")
    copy = tmp_path / UNIT.name
    copy.write_text(text.replace(shlex.split(command)[0], sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and UNIT.name not in done.stderr, done.stderr
