"""A Postgres server of a test: a new cluster on a free port, run as another user if we are root."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from tests.live.server_process import free_port

FOLDERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
USERS = ("postgres", "nobody")
START_S_MAX = 60
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "wal_level": "logical",
    "max_replication_slots": "20",
    "max_wal_senders": "20",
    "logical_decoding_work_mem": "64kB",  # so that transactions of tests are spilled
    "fsync": "off",
    "autovacuum": "off",
}


def unavailable() -> str:
    """Say why there can be no server here; nothing if there can be one."""
    if not FOLDERS or not (FOLDERS[0] / "initdb").exists():
        return "Postgres is not installed: /usr/lib/postgresql/*/bin/initdb is missing"
    if os.geteuid() == 0 and _user() is None:
        return f"initdb refuses to run as root, and there is no user {' or '.join(USERS)}"
    return ""


def _user() -> str | None:
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((user for user in USERS if user in known), None)


class PostgresServer:
    """A cluster. It can be killed and started again."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.folder = folder
        self.port = free_port()
        self._settings = SETTINGS | dict(settings)
        self._process: subprocess.Popen[bytes] | None = None
        self._as: dict[str, Any] = {"cwd": folder}
        if os.geteuid() == 0:
            user = _user()
            assert user is not None
            folder.chmod(0o755)
            group = pwd.getpwnam(user).pw_gid
            shutil.chown(folder, user, group)
            self._as |= {"user": user, "group": group, "extra_groups": []}

    @property
    def connection(self) -> dict[str, str]:
        return {
            "host": "127.0.0.1",
            "port": str(self.port),
            "user": "postgres",
            "dbname": "postgres",
        }

    def create(self) -> None:
        command = [str(FOLDERS[0] / "initdb"), "-D", str(self.folder / "data"), "-A", "trust"]
        command += ["-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync"]
        done: subprocess.CompletedProcess[bytes] = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **self._as
        )
        assert done.returncode == 0, done.stdout.decode()

    def start(self) -> None:
        command = [str(FOLDERS[0] / "postgres"), "-D", str(self.folder / "data")]
        command += ["-k", str(self.folder)]
        command += ["-p", str(self.port)]
        for name, value in self._settings.items():
            command += ["-c", f"{name}={value}"]
        deadline = time.monotonic() + START_S_MAX
        while True:
            if self._process is None or self._process.poll() is not None:
                # After a kill the first try may fail: backends of before have not ended yet.
                with (self.folder / "output").open("ab") as output:
                    self._process = subprocess.Popen(
                        command, stdout=output, stderr=output, **self._as
                    )
            try:
                self.connect().close()
                return
            except psycopg.OperationalError as error:
                said = (self.folder / "output").read_text(errors="replace")
                assert time.monotonic() < deadline, f"{error}\n{said}"
                time.sleep(0.05)

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(**self.connection, autocommit=True)  # type: ignore[arg-type]

    def kill(self) -> None:
        """Kill the server and all its backends at once, as a power cut would."""
        if self._process is None:
            return
        # The backends notice that their parent is gone, and exit without another step.
        self._process.kill()
        self._process.wait()
        self._process = None

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None


@contextmanager
def postgres_server(**settings: str) -> Iterator[PostgresServer]:
    """A server until the end of the block."""
    folder = Path(tempfile.mkdtemp(prefix="frazil-postgres-", dir="/tmp"))
    server = PostgresServer(folder, settings)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
