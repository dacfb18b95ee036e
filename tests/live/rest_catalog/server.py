"""Iceberg's reference REST catalog as a separate process on loopback."""

from __future__ import annotations

import subprocess
from collections import deque
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from tests.live.rest_catalog.jars import class_path, gateway_jar

QUICK = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m"]
"""JVM options for a short-lived process on a small machine."""
STOP_SECONDS_MAX = 60
OUTPUT_LINES = 100


class RestServer:
    """One server on one folder, with the same port after each start.

    Owned by the test; ends with the test's process.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self.warehouse = folder / "warehouse"
        self.port = 0
        self.output: deque[str] = deque(maxlen=OUTPUT_LINES)
        """The last lines of the process's output."""
        self.start()

    def start(self) -> None:
        """Start or restart the process, and return once it responds."""
        gateway_port, token, self.process = launch_gateway(
            classpath=class_path(),
            jarpath=gateway_jar(),
            javaopts=QUICK,
            die_on_exit=True,
            enable_auth=True,
            redirect_stdout=self.output,
            redirect_stderr=self.output,
            return_proc=True,
        )
        gateway = JavaGateway(
            gateway_parameters=GatewayParameters(
                port=gateway_port,
                auth_token=token,
                auto_convert=True,
                enable_memory_management=False,  # no message when Python drops an object
            )
        )
        self.port = self._serve(gateway.jvm)
        gateway.close()

    def _serve(self, java: Any) -> int:
        catalog = java.org.apache.iceberg.CatalogUtil.buildIcebergCatalog(
            "served",
            {
                "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
                "uri": f"jdbc:sqlite:{self._folder}/served.db?journal_mode=WAL&busy_timeout=30000",
                "jdbc.schema-version": "V1",
                "warehouse": f"file://{self.warehouse}",
            },
            java.org.apache.hadoop.conf.Configuration(),
        )
        rest, servlets = java.org.apache.iceberg.rest, java.org.eclipse.jetty.ee10.servlet
        handler = servlets.ServletContextHandler()
        servlet = rest.RESTCatalogServlet(rest.RESTCatalogAdapter(catalog))
        handler.addServlet(servlets.ServletHolder(servlet), "/*")
        address = java.java.net.InetSocketAddress("127.0.0.1", self.port)
        server = java.org.eclipse.jetty.server.Server(address)
        server.setHandler(handler)
        server.start()
        return int(server.getURI().getPort())

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def kill(self) -> None:
        """Send SIGKILL. Harmless when the process has ended."""
        self.process.kill()
        self._wait()

    def _wait(self) -> None:
        self.process.stdin.close()
        self.process.wait(STOP_SECONDS_MAX)

    def close(self) -> None:
        """Close its standard input, and send SIGKILL after a timeout."""
        try:
            self._wait()
        except subprocess.TimeoutExpired:
            self.kill()

    def __enter__(self) -> RestServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
