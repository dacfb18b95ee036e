"""A forked process is killed, and its end is seen, with and without Linux's process descriptors."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import os, select, signal, sys, threading

if sys.argv[1] == "without":
    del os.pidfd_open, signal.pidfd_send_signal

from frazil.processes import fork_process, has_ended, kill_process

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
children = []
for _ in range(2):  # the second child must not hold anything of the first one
    pid, descriptor = fork_process()
    if pid == 0:
        threading.Event().wait()
    children.append((pid, descriptor))
assert not any(has_ended(descriptor) for _, descriptor in children)
kill_process(*children[0])
select.select([children[0][1]], [], [])
assert has_ended(children[0][1])
assert not has_ended(children[1][1])
kill_process(*children[0])  # harmless, and hits no other process
kill_process(*children[1])
select.select([children[1][1]], [], [])
"""


@pytest.mark.parametrize("descriptors", ["with", "without"])
def test_a_killed_process_ends_alone(descriptors: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, descriptors],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
