"""A newcomer's first hour, as a command: `make newcomer`.

A fresh clone of the last commit, a fresh home, no Node.js on the path: `make up` to a page in the
browser, then every command and program of README and docs in order, in one shell. Prints minutes
and megabytes, and for every command that is not run, why. Exits with 1 if anything fails.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests import pages
from tests.pages import GUIDES, ROOT, Block, blocks_of, commands_of, reason_not_to_run
from tests.ui.browser import chromium

HIDDEN = frozenset({"node", "nodejs", "npm", "npx", "corepack"})
"""Programs that a newcomer does not have."""
KEPT = re.compile(
    r"(LANG|TERM|PIP_\w+|\w+_proxy|SSL_CERT_\w+|REQUESTS_CA_BUNDLE|JAVA_\w+|FRAZIL_\w+)$", re.I
)
"""Variables of this machine that say where packages come from."""
RUN_TOO = re.compile(
    r"make\s*(#|$)|pip install\b|opentelemetry-|frazil (warm|backup|restore)\b"
    r"|frazil doctor .*--spark|frazil demo\s*(#|$)|frazil up --data restored"
    r"|frazil pyspark\b|(python|spark-submit \S+ \S+) examples/"
)
"""Commands that are too slow for the tests, or need a network, but that a newcomer runs."""
UNTIL_STOPPED = {
    r"frazil (demo\s*(#|$)|up )": 20,
    r"examples/(?!.*--drain)": 60,
}
"""Commands that run until stopped, and after how many seconds that is. Spark starts slowly."""
BESIDE_A_NODE = re.compile(r"frazil (backup|pyspark)\b")
"""Commands on a data folder that a node may use."""
APP = "import logging\n\nlogging.getLogger('app').warning('it runs')\n"
"""The reader's program."""
COMMAND_S_MAX = 300
ENDLESS_S = 5
POLL_S = 0.1
DONE = "newcomer-done"


class Shell:
    """One shell of a person: what a command exports, the next one has."""

    def __init__(self, folder: Path, environment: dict[str, str], log: IO[str]) -> None:
        self._log = log
        self._process = subprocess.Popen(
            ["bash", "--norc"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, command: str) -> tuple[int, str]:
        """Run a command. Returns its exit code and what it printed."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._log.write(f"$ {command}\n")
        self._process.stdin.write(f"{command}\necho {DONE} $?\n")
        self._process.stdin.flush()
        lines: list[str] = []
        too_long = threading.Timer(COMMAND_S_MAX, self._end_command)
        too_long.start()
        try:
            for line in self._process.stdout:
                self._log.write(line)
                self._log.flush()
                before, found, code = line.rpartition(f"{DONE} ")
                if found:
                    return int(code), "".join([*lines, before])
                lines.append(line)
        finally:
            too_long.cancel()
        return 1, "the shell has ended"

    def _end_command(self) -> None:
        """End what the shell waits for. The shell goes on."""
        self._log.write(f"not done after {COMMAND_S_MAX} s\n")
        subprocess.run(["pkill", "-KILL", "-P", str(self._process.pid)], check=False)

    def close(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def main() -> int:
    """Walk the whole way. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="keep the clone and its home")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="frazil-newcomer-"))
    print(f"in {folder}; commands and their output are in {folder}.log", flush=True)
    try:
        with Path(f"{folder}.log").open("w") as log:
            return _walk(folder, log)
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)


def _walk(folder: Path, log: IO[str]) -> int:
    clone, home, begin = folder / "frazil", folder / "home", time.monotonic()
    home.mkdir()
    subprocess.run(["git", "clone", "--quiet", f"file://{ROOT}", str(clone)], check=True)
    print(f"clone: {_megabytes(clone)} MB, of it .git {_megabytes(clone / '.git')} MB", flush=True)
    environment = _environment(folder, home)
    with _node(clone, environment, log) as took_s:
        print(f"make up: {took_s / 60:.1f} minutes to a ready node, without Node.js", flush=True)
        size = f".venv {_megabytes(clone / '.venv')} MB, home {_megabytes(home)} MB"
        print(f"installed: {size}", flush=True)
        title = _look(environment["FRAZIL_URL"], Path(f"{folder}.png"))
        print(f"page: {title!r}, picture in {folder}.png", flush=True)
        failed = _follow(clone, environment, log, is_node_up=True)
    failed += _follow(clone, environment, log, is_node_up=False)
    print(f"everything: {(time.monotonic() - begin) / 60:.1f} minutes", flush=True)
    for place in failed:
        print(f"failed: {place}", flush=True)
    return 1 if failed else 0


def _environment(folder: Path, home: Path) -> dict[str, str]:
    """Return the variables of a fresh account: no Node.js, ports that are free."""
    programs = folder / "bin"
    programs.mkdir()
    for each in os.environ["PATH"].split(os.pathsep):
        if Path(each).is_dir() and not Path(each, "activate").exists():
            for program in Path(each).iterdir():
                if program.name not in HIDDEN and not (programs / program.name).exists():
                    (programs / program.name).symlink_to(program)
    kept = {name: value for name, value in os.environ.items() if KEPT.match(name)}
    grpc, http, api = _free_ports(3)
    return kept | {
        "HOME": str(home),
        "PATH": str(programs),
        "FRAZIL_INGEST__GRPC_PORT": str(grpc),
        "FRAZIL_INGEST__HTTP_PORT": str(http),
        "FRAZIL_SERVE__HTTP_PORT": str(api),
        "FRAZIL_URL": f"http://127.0.0.1:{api}",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{http}",
    }


def _free_ports(count: int) -> list[int]:
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in taken]
    for each in taken:
        each.close()
    return ports


@contextmanager
def _node(clone: Path, environment: dict[str, str], log: IO[str]) -> Iterator[float]:
    """Run `make up` until it is ready, and stop it at the end as Ctrl-C does."""
    begin = time.monotonic()
    banner = clone.with_name("banner")
    with (
        banner.open("w") as output,
        subprocess.Popen(
            ["make", "up"],
            cwd=clone,
            env=environment,
            stdout=output,
            stderr=log,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            while "Ctrl-C" not in banner.read_text():
                if process.poll() is not None:
                    raise SystemExit("make up has ended; see the log")
                time.sleep(POLL_S)
            yield time.monotonic() - begin
        finally:
            os.killpg(process.pid, signal.SIGINT)
            process.wait(COMMAND_S_MAX)


def _look(url: str, picture: Path) -> str:
    """Open the page as a person does. Returns its heading."""
    with chromium() as browser:
        page = browser.new_page()
        page.goto(url)
        heading = page.get_by_role("heading", level=1)
        heading.wait_for()
        page.get_by_role("navigation").first.wait_for()
        page.screenshot(path=picture)
        return heading.inner_text()


def _follow(
    clone: Path, environment: dict[str, str], log: IO[str], *, is_node_up: bool
) -> list[str]:
    """Run what README and docs show, in order, in one shell. Returns what failed."""
    (clone / "app.py").write_text(APP)
    shell = Shell(clone, environment, log)
    shell.run(". .venv/bin/activate")
    failed = []
    try:
        for page in GUIDES:
            ran, left = 0, Counter[str]()
            for block in blocks_of(page):
                for command, reason in _commands(block, is_node_up):
                    if reason is not None:
                        left[reason] += 1
                        continue
                    code, output = shell.run(_text(command, environment))
                    ran += 1
                    if code and not (code == 1 and pages.JUDGES.search(command)):
                        failed.append(f"{block.place}: {command}\n{output[-2000:]}")
            if ran or (left and is_node_up):
                print(f"{page.name}: {ran} commands and programs run", flush=True)
            if is_node_up:
                for reason, count in left.items():
                    print(f"  {count} not run: {reason}", flush=True)
    finally:
        shell.close()
    return failed


def _commands(block: Block, is_node_up: bool) -> Iterator[tuple[str, str | None]]:
    """Yield each command of a block, and why it is not run; those for another time are left out."""
    if block.language == "python":
        if bool(pages.ON_FOLDER.search(block.text)) != is_node_up:
            reason = "needs a damaged log" if "repair_partition" in block.text else None
            # The programs of docs/spark.md are one.
            verb = ">>" if block.page.name == "spark.md" else ">"
            file = f"newcomer_{block.page.stem}.py"
            yield f"cat {verb} {file} <<'END'\n{block.text}END\npython {file}", reason
    elif block.language == "sh":
        for command in commands_of(block.text):
            needs_folder = pages.ON_FOLDER.search(command) and not BESIDE_A_NODE.match(command)
            if bool(needs_folder) == is_node_up:
                continue
            yield _stopping(command), None if RUN_TOO.match(command) else reason_not_to_run(command)


def _stopping(command: str) -> str:
    """Return a command that does not read from the shell, and ends."""
    seconds = ENDLESS_S if pages.ENDLESS.search(command) else None
    for pattern, after_s in UNTIL_STOPPED.items():
        seconds = after_s if re.search(pattern, command) else seconds
    bare = command.partition(" #")[0]
    if seconds is not None:
        # 124: it ran until then. 130: it ended by Ctrl-C.
        return f"timeout -s INT {seconds} {bare} </dev/null || [[ $? =~ ^(124|130)$ ]]"
    return f"{bare} </dev/null" if re.match("frazil pyspark", command) else command


def _text(command: str, environment: dict[str, str]) -> str:
    """Return a command with the ports of this node, and with a shorter demo."""
    names = {"4317": "INGEST__GRPC_PORT", "4318": "INGEST__HTTP_PORT", "4320": "SERVE__HTTP_PORT"}
    for port, name in names.items():
        command = re.sub(rf"\b{port}\b", environment[f"FRAZIL_{name}"], command)
    return re.sub(r"frazil demo --seconds \d+", "frazil demo --seconds 1 --backfill 15", command)


def _megabytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) // 10**6


if __name__ == "__main__":
    sys.exit(main())
