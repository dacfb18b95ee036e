"""S3Proxy as a separate process on loopback: checks signatures, keeps objects in a folder."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path

from tests.live.s3.jars import server_jar

QUICK = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m"]
"""JVM options for a short-lived process on a small machine."""
KEY_ID = "tests"
SECRET = "only-tests-know"
START_SECONDS_MAX = 180
POLL_S = 0.05


class S3Server:
    """One server on one folder. Owned by the test."""

    def __init__(self, folder: Path) -> None:
        self.objects = folder / "objects"
        self.objects.mkdir(parents=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.endpoint = f"http://127.0.0.1:{port}"
        settings = folder / "s3proxy.properties"
        settings.write_text(
            f"s3proxy.endpoint={self.endpoint}\n"
            "s3proxy.authorization=aws-v2-or-v4\n"
            f"s3proxy.identity={KEY_ID}\n"
            f"s3proxy.credential={SECRET}\n"
            "jclouds.provider=filesystem-nio2\n"
            f"jclouds.filesystem.basedir={self.objects}\n"
        )
        command = ["java", *QUICK, "-jar", str(server_jar()), "--properties", str(settings)]
        with (folder / "output").open("wb") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        self._await_port(port)

    def _await_port(self, port: int) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return
            except ConnectionRefusedError:
                assert self._process.poll() is None, "the server has ended"
                assert time.monotonic() < deadline
                time.sleep(POLL_S)

    def make_bucket(self, name: str) -> None:
        (self.objects / name).mkdir()

    def __enter__(self) -> S3Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
