"""The program of a connector's process: `python -m frazil.connectors.process`, started by a node.

Code of others runs here, and only here. It has a memory limit, a low priority, no core files, and
ends with the node. What it prints goes to the node's log.
"""

from __future__ import annotations

import logging
import os
import resource
import signal
import socket
import sys
from contextlib import suppress

from frazil.connectors.connector_link import ConnectorLink, NodeEnded
from frazil.connectors.connector_types import connector_type
from frazil.connectors.contract import ConnectorContext, Sink, Source
from frazil.connectors.messages import StartConnector
from frazil.connectors.options import options_of
from frazil.connectors.sink_loop import run_sink
from frazil.connectors.source_loop import run_source
from frazil.errors import FrazilError, Malformed
from frazil.model import SystemClock
from frazil.processes import end_with_parent

logger = logging.getLogger(__name__)

FAILED_CODE = 1
NICENESS = 5
"""More than the reader has: a node that is short of processors answers first."""


def main(peer: int, memory_bytes_max: int) -> int:
    end_with_parent()
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes_max, memory_bytes_max))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the node asks to stop when it is our turn
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.INFO)
    link = ConnectorLink(socket.socket(fileno=peer))
    with suppress(NodeEnded):
        try:
            run(link)
        except NodeEnded:
            raise
        except Exception as error:  # top of loop: the node decides what happens next
            if not isinstance(error, FrazilError):
                logger.exception("the connector failed")
            link.report_failure(error)
            return FAILED_CODE
    return 0


def run(link: ConnectorLink) -> None:
    """Run what the node asks for."""
    start = link.receive()
    assert isinstance(start, StartConnector)
    connector = _connector_of(start)
    if start.is_check:
        link.report_running()
        return
    try:
        if start.role == "source":
            run_source(connector, start, link)  # type: ignore[arg-type]
        else:
            run_sink(connector, start, link)  # type: ignore[arg-type]
    except Exception:  # top of loop: it is reported once the connector is closed
        _close_after_failure(connector)
        raise
    connector.close()
    link.report_finished()


def _close_after_failure(connector: Source | Sink) -> None:
    try:
        connector.close()
    except Exception:  # top of loop: why it failed matters more
        logger.exception("the connector could not be closed")


def _connector_of(start: StartConnector) -> Source | Sink:
    kind = connector_type(start.type_name)
    make = kind.source if start.role == "source" else kind.sink
    if make is None:
        other = "SINK" if start.role == "source" else "SOURCE"
        raise Malformed(f"{start.type_name} is no {start.role}; it is for CREATE {other}")
    if kind.connection == "required" and not start.connection_name:
        raise Malformed(
            f"{start.type_name} needs CONNECTION=name, a connection of the configuration"
        )
    if kind.connection == "none" and start.connection_name:
        raise Malformed(f"{start.type_name} has no use for CONNECTION; leave it out")
    context = ConnectorContext(
        name=start.name,
        topic=start.topic,
        connection=start.connection,
        roots=start.roots,
        batch_bytes_max=start.batch_bytes_max,
        clock=SystemClock(),
    )
    return make(options_of(kind.options_for(start.role), start.options), context)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
