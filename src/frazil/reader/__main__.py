"""The program of the reader process: `python -m frazil.reader`, started by the writer."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys

import msgspec
import uvloop

from frazil.config import Config
from frazil.errors import FrazilError
from frazil.model import SystemClock, SystemRand
from frazil.processes import end_with_parent
from frazil.program_log import log_to_stderr
from frazil.reader import NodeLink, Sockets, run
from frazil.self_tracing import export_own_traces

FAILED_CODE = 1
NICENESS = 10
"""When processors are short, acknowledgements come before rows; queries come after both."""


def main(control: int, log: int, appends: int, commits: int, connections: int) -> int:
    end_with_parent()
    os.nice(NICENESS)
    for number in (signal.SIGINT, signal.SIGTERM):
        # Ctrl-C and systemd signal every process; the writer asks us to stop when it is our turn.
        # A handler of our own, because an ignored signal would stay ignored in Spark's process.
        signal.signal(number, lambda *_: None)
    link = NodeLink(socket.socket(fileno=control))
    sockets = Sockets(log, appends, commits, connections)
    hello = link.hello()
    config = msgspec.json.decode(hello.config, type=Config)
    log_to_stderr()
    for name, level in hello.log_levels.items():
        logging.getLogger(name).setLevel(level)
    link.start()
    try:
        with export_own_traces(os.environ, is_enabled=config.self_tracing):
            uvloop.run(run(hello, config, link, sockets, clock=SystemClock(), rand=SystemRand()))
    except FrazilError as error:
        link.report_failure(error)
        return FAILED_CODE
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
