"""Power cuts: an ext4 image on a loop device is shut down under a running process.

The shutdown ioctl drops everything the file system has not written, as a power cut does.
Needs root, mkfs.ext4 and loop devices; the run is skipped where they are missing.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import struct
import subprocess
import tempfile
from pathlib import Path

from frazil.model import Rand
from tests.torture.history import Recorder
from tests.torture.log.kill9 import Torture
from tests.torture.report import Report

EXT4_IOC_SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2
IMAGE_BYTES = 96 * 1024 * 1024
CYCLES_PER_IMAGE = 20


def run(cycles: int, seed: int) -> Report:
    report = Report("powercut", seed, must_fire=("power_cut", "acknowledged"))
    report.skipped = skip_reason()
    if report.skipped:
        return report
    with tempfile.TemporaryDirectory() as scratch:
        recorder = Recorder(Path(scratch) / "history")
        machine = Machine(Path(scratch))
        torture = Torture(Path(scratch), "mount/data", recorder, Rand(seed))
        try:
            for cycle in range(cycles):
                if cycle % CYCLES_PER_IMAGE == 0:
                    machine.make()
                    torture.start_over()
                verdict, fired = torture.cycle(machine.cut_power, is_powercut=True)
                fired["power_cut"] += 1
                report.take(verdict, fired, f"cycle {cycle}:")
        finally:
            machine.unmount()
        recorder.close()
    return report


def skip_reason() -> str:
    """Return why power cuts are impossible on this machine, or an empty string."""
    if os.geteuid() != 0:
        return "cutting power needs root, to mount an image"
    if shutil.which("mkfs.ext4") is None or not Path("/dev/loop-control").exists():
        return "cutting power needs mkfs.ext4 and loop devices"
    with tempfile.TemporaryDirectory() as scratch:
        machine = Machine(Path(scratch))
        try:
            machine.make()
        except subprocess.CalledProcessError as error:
            return f"cutting power needs a loop device that can be mounted: {error.stderr!r}"
        machine.unmount()
    return ""


class Machine:
    """A mounted ext4 image whose power can be cut."""

    def __init__(self, folder: Path) -> None:
        self._image = folder / "image"
        self.mount_point = folder / "mount"
        self.mount_point.mkdir()
        self._is_mounted = False

    def make(self) -> None:
        """Create and mount an empty file system."""
        self.unmount()
        with self._image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        _call("mkfs.ext4", "-q", "-F", str(self._image))
        self.mount()

    def mount(self) -> None:
        _call("mount", "-o", "loop", str(self._image), str(self.mount_point))
        self._is_mounted = True

    def unmount(self) -> None:
        if self._is_mounted:
            _call("umount", str(self.mount_point))
            self._is_mounted = False

    def cut_power(self, child: int) -> None:
        """Drop what is not durable, kill the process, and mount the image again."""
        descriptor = os.open(self.mount_point, os.O_RDONLY)
        fcntl.ioctl(descriptor, EXT4_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        os.close(descriptor)
        os.kill(child, signal.SIGKILL)
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        self.unmount()
        self.mount()


def _call(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
