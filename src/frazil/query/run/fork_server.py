"""The fork server of query workers: `python -m frazil.query.run.fork_server FD`.

It loads everything that queries need, once, and forks a worker for each socket that it is sent: a
worker starts in milliseconds, and shares the memory of what was loaded. It runs no query itself and
has no thread of its own making: a fork copies only the thread that forks.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

from frazil.processes import end_with_parent, fork_process
from frazil.query.run.protocol import FORKED, LOADED, PID
from frazil.query.run.worker_main import serve
from frazil.query.warm_up import warm

IDLE_S = 0.3
"""Compiled functions are loaded when no worker was asked for during this time. A worker forked
before is an early one: it loads those that it needs, into memory of its own."""


def main(descriptor: int) -> None:
    """Fork workers until the engine closes the socket."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the workers
    gc.freeze()  # a collection would copy the pages of everything that it visits
    with socket.socket(fileno=descriptor) as requests, Path(os.devnull).open("wb") as silence:
        while select.select([requests], [], [], IDLE_S)[0]:
            if not _fork_one(requests, silence.fileno()):
                return
        warm()
        gc.freeze()
        try:
            requests.sendall(LOADED)
        except BrokenPipeError:  # the engine was closed while we loaded
            return
        while _fork_one(requests, silence.fileno()):
            pass


def _fork_one(requests: socket.socket, silence: int) -> bool:
    """Fork a worker for the next socket. Returns False if the engine has closed ours."""
    try:
        data, files, _, _ = socket.recv_fds(requests, 1, 1)
    except ConnectionResetError:  # closed before it took our last message
        return False
    if not data:
        return False
    pid, process = fork_process()
    if pid == 0:
        requests.close()
        end_with_parent()
        os.dup2(silence, 2)  # of DataFusion's panics and failed allocations
        with suppress(BrokenPipeError):
            serve(socket.socket(fileno=files[0]))
        os._exit(1)
    os.close(files[0])
    try:
        socket.send_fds(requests, [FORKED, PID.pack(pid)], [process])
    except BrokenPipeError:  # the engine was closed; the worker sees the end of its socket
        return False
    finally:
        os.close(process)
    return True


if __name__ == "__main__":
    main(int(sys.argv[1]))
