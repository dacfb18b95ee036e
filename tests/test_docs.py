"""The docs work: every command and program in them runs, except those that `tests.pages.NOT_RUN`
lists with a reason. Flags, make targets and links exist."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import frazil
from frazil import cli
from frazil.serve.http.responses import STATUSES
from frazil.serve.routes import endpoints_of
from tests import pages
from tests.clients.node import Node
from tests.pages import GUIDES, PAGES, ROOT, Block, blocks_of, commands_of, reason_not_to_run

WAIT_S = 300
"""A flush starts Spark, perhaps on a busy machine."""
SEED = 7
QUERIES = blocks_of(ROOT / "docs" / "sql.md", "sql")
EMPTY = ("FROM dead_letters",)
"""Queries that return nothing on a healthy node."""

RUNNER = """
import json, sys
for place, text in json.load(sys.stdin):
    print("block", place, file=sys.stderr, flush=True)
    exec(compile(text, place, "exec"), {"__name__": "__main__"})
"""
"""Runs the blocks of a page in order, each in its own namespace."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """A working folder for commands, with a node that has the demo's telemetry."""

    folder: Path
    node: Node

    @property
    def environment(self) -> dict[str, str]:
        """The environment of commands, with the ports of the node."""
        node = self.node
        return os.environ | {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            "FRAZIL_URL": node.url,
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{node.http_port}",
            "FRAZIL_INGEST__GRPC_PORT": str(node.grpc_port),
            "FRAZIL_INGEST__HTTP_PORT": str(node.http_port),
            "FRAZIL_SERVE__HTTP_PORT": str(node.api_port),
        }

    def text(self, written: str) -> str:
        """Return text of a page with the node's ports, and with a shorter demo."""
        ports = {"4317": self.node.grpc_port, "4318": self.node.http_port}
        ports["4320"] = self.node.api_port
        ports["8815"] = self.node.flight_port
        for shown, real in ports.items():
            written = re.sub(rf"\b{shown}\b", str(real), written)
        return re.sub(r"frazil demo --seconds \d+", "frazil demo --seconds 1 --backfill 1", written)

    def run(self, command: list[str], text: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            input=text,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
        )

    def command(self, block: Block, command: str) -> None:
        """Run one command of a page in a shell."""
        command = self.text(command)
        if pages.ENDLESS.search(command):
            self._endless(block, command)
            return
        done = self.run(["bash", "-c", f"set -e -o pipefail\n{command}"])
        good = (0, 1) if pages.JUDGES.search(command) else (0,)
        assert done.returncode in good, f"{block.place}\n{command}\n{done.stdout}{done.stderr}"

    def _endless(self, block: Block, command: str) -> None:
        """Check that it prints something and exits on SIGINT."""
        with subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            process.send_signal(signal.SIGINT)
            process.stdout.read()
        assert first, f"{block.place} printed nothing: {command}"

    def python(self, blocks: list[Block]) -> None:
        """Run the programs of a page in order."""
        if not blocks:
            return
        texts = [(block.place, self.text(block.text)) for block in blocks]
        done = self.run([sys.executable, "-c", RUNNER], json.dumps(texts))
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
        assert done.stdout or not any("print(" in text for _, text in texts)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A node with the demo's telemetry: most of it in the lake, the newest only in the hot tier."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "bin").mkdir()
    _program(folder / "bin" / "frazil", f'"{sys.executable}" -m frazil')
    if (curl := shutil.which("curl")) is not None:
        _program(folder / "bin" / "curl", f"{curl} --silent --show-error --fail")
    (folder / "examples").symlink_to(ROOT / "examples")
    with Node(folder / "data") as node:
        workspace = Workspace(folder, node)
        for command in (
            f"frazil demo --seed {SEED} --rate 3 --backfill 15 --count 2700 --json",
            "frazil flush --json",
            "frazil demo --rate 50 --count 50 --json",
        ):
            done = workspace.run(["bash", "-c", command])
            assert done.returncode == 0, command + done.stderr
        yield workspace


def _program(path: Path, command: str) -> None:
    """Write a wrapper for the shell; that of `curl` fails on HTTP errors."""
    path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    path.chmod(0o755)


def _commands(page: Path) -> Iterator[tuple[Block, str]]:
    """Yield the commands of a page that can be run."""
    if (page.name, "sh") in pages.ELSEWHERE:
        return
    for block in blocks_of(page, "sh"):
        for command in commands_of(block.text):
            if reason_not_to_run(command) is None:
                yield block, command


def _programs(page: Path) -> list[Block]:
    found = blocks_of(page, "python")
    return [] if (page.name, "python") in pages.ELSEWHERE else found


@pytest.mark.parametrize("query", QUERIES, ids=lambda block: str(block.line))
def test_every_query_returns_rows(workspace: Workspace, query: Block) -> None:
    """With the columns that the page shows below it."""
    rows = frazil.connect(workspace.node.url).sql(query.text).arrow()
    assert rows.num_rows or any(word in query.text for word in EMPTY), query.place
    shown = _columns_below(query)
    if shown is not None:
        assert shown == rows.column_names, query.place


def _columns_below(query: Block) -> list[str] | None:
    """Return the column names of the table that follows a query."""
    lines = query.page.read_text().splitlines()[query.line - 1 :]
    below = lines[lines.index("```") + 1 :]
    if below[:2] != ["", "```text"] or not below[2].startswith("┌"):
        return None
    return [name.strip() for name in below[3].strip("│").split("│")]


def test_there_are_queries() -> None:
    assert len(QUERIES) >= 20


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("page", GUIDES, ids=lambda path: path.name)
def test_every_command_runs(workspace: Workspace, page: Path) -> None:
    """In the order of the page."""
    for block, command in _commands(page):
        if not pages.ON_FOLDER.search(command):
            workspace.command(block, command)


@pytest.mark.parametrize("page", GUIDES, ids=lambda path: path.name)
def test_every_program_runs(workspace: Workspace, page: Path) -> None:
    """In the order of the page."""
    workspace.python([each for each in _programs(page) if not pages.ON_FOLDER.search(each.text)])


def test_commands_on_a_folder_run_after_the_node_stops(workspace: Workspace) -> None:
    assert workspace.node.stop() == 0
    for page in GUIDES:
        for block, command in _commands(page):
            if pages.ON_FOLDER.search(command):
                workspace.command(block, command)
        workspace.python([each for each in _programs(page) if pages.ON_FOLDER.search(each.text)])


def test_every_flag_in_the_pages_exists() -> None:
    """Also in commands that are not run."""
    parser = cli.parser()
    calls = [
        call
        for page in PAGES
        for block in blocks_of(page, "sh")
        for command in commands_of(block.text)
        for call in pages.frazil_calls(command)
    ]
    assert len(calls) >= 30
    for call in calls:
        assert parser.parse_args(call).run, call


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        text = "\n".join(block.text for block in blocks_of(page, "sh"))
        for target in re.findall(r"^\s*make ([a-z]+)", text, re.MULTILINE):
            assert target in targets, f"{page.name} names make {target}"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "llms.txt"], ids=lambda path: path.name)
def test_every_relative_link_has_a_file_and_a_heading(page: Path) -> None:
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", page.read_text()):
        name, _, heading = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), f"{page.name} links to {link}"
        if heading:
            assert heading in _headings(target), f"{page.name} links to {link}"


def _headings(page: Path) -> set[str]:
    """Return the anchors of headings on GitHub."""
    found = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text).lower().replace(" ", "-") for text in found}


def test_llms_txt_lists_every_guide() -> None:
    text = (ROOT / "llms.txt").read_text()
    for page in GUIDES:
        assert f"({page.relative_to(ROOT)})" in text, page.name


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_table_row_has_all_cells(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        counts = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(counts) == 1, f"{page.name}: {table.splitlines()[0]}"


def test_every_yaml_toml_and_json_block_parses() -> None:
    yaml = pytest.importorskip("yaml")
    parsers: dict[str, Callable[[str], object]] = {
        "yaml": lambda text: list(yaml.safe_load_all(text)),
        "toml": tomllib.loads,
        "json": json.loads,
    }
    counts = dict.fromkeys(parsers, 0)
    for page in PAGES:
        for block in blocks_of(page):
            if block.language in parsers:
                parsers[block.language](block.text)
                counts[block.language] += 1
    assert counts["yaml"] >= 5 and counts["toml"]


def test_the_api_page_has_every_endpoint() -> None:
    """And no others, by method and path."""
    page = (ROOT / "docs" / "api.md").read_text()
    shown = set(re.findall(r"^\| (GET|POST|PUT|DELETE) \| `([^`]+)` \|", page, re.MULTILINE))
    assert shown == {(endpoint.method, endpoint.path) for endpoint in endpoints_of()}


def test_alerts_are_on_metrics_that_exist() -> None:
    """Every name in the rules of docs/operating.md is in docs/metrics.md."""
    known = (ROOT / "docs" / "metrics.md").read_text()
    rules = "\n".join(block.text for block in blocks_of(ROOT / "docs" / "operating.md", "yaml"))
    named = set(re.findall(r"\bfrazil_\w+", rules))
    assert len(named) >= 8
    for name in named:
        assert f"`{name.removesuffix('_bucket')}`" in known, name


def test_the_api_page_has_every_error() -> None:
    """By status and kind."""
    page = (ROOT / "docs" / "api.md").read_text()
    shown = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", page, re.MULTILINE))
    for kind, status in STATUSES.items():
        name = re.sub(r"(?<!^)([A-Z])", r"_\1", kind.__name__).lower()
        assert shown[name] == str(int(status))
