"""Users, ACLs and quotas on disk: private, and old or new after any crash."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from frazil.disk import RealDisk
from frazil.errors import Corrupt, Overloaded
from frazil.kafka.access.acls import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from frazil.kafka.access.authorizer import KIND as ACLS_KIND
from frazil.kafka.access.authorizer import NAME as ACLS_NAME
from frazil.kafka.access.authorizer import AclTable
from frazil.kafka.access.files import AccessFile
from frazil.kafka.access.scram import Mechanism, new_credential
from frazil.kafka.access.users import UserFile, UserTable
from frazil.model import Rand, SystemClock
from tests.sim.clock import SimClock
from tests.sim.disk import Faults, PowerCut, SimDisk

ALICE = new_credential(Mechanism.SHA_256, "secret", random.Random(1))
ACL = AclBinding(
    *(ResourceType.TOPIC, "orders", PatternType.PREFIXED, "User:alice", "*"),
    *(AclOperation.READ, AclPermission.ALLOW),
)


def add(file: UserFile, name: str) -> UserTable:
    return file.change(lambda table: table.with_credential(name, Mechanism.SHA_256, ALICE))


def write_users(disk: SimDisk) -> None:
    for name in ("alice", "bob", "carol"):
        add(UserFile(disk, Rand(3), SimClock()), name)


def test_users_are_old_or_new_after_any_power_cut() -> None:
    """At every call: what was told is there, with the secret that it began with."""
    trace: list[str] = []
    write_users(SimDisk(trace=trace))
    assert sum(line == "sync_directory kafka 0" for line in trace) == 3
    told = [n for n, line in enumerate(trace, 1) if line == "sync_directory kafka 0"]
    for crash_at in range(1, len(trace) + 1):
        disk = SimDisk(faults=Faults(crash_at=crash_at), rand=Rand(crash_at))
        with pytest.raises(PowerCut):
            write_users(disk)
        for after in (disk.crash(Rand(crash_at)), disk.process_kill()):
            file = UserFile(after, Rand(4), SimClock())
            found = file.read()
            names = ["alice", "bob", "carol"][: len(found.users)]
            assert sorted(found.users) == names
            assert len(names) >= sum(n < crash_at for n in told)
            assert set(add(file, "dave").users) == {*names, "dave"}


def test_the_file_is_private_and_holds_no_password(tmp_path: Path) -> None:
    credential = new_credential(Mechanism.SHA_512, "correct horse", random.SystemRandom())
    file = UserFile(RealDisk(tmp_path), random.SystemRandom(), SystemClock())
    file.change(lambda table: table.with_credential("alice", Mechanism.SHA_512, credential))
    path = tmp_path / "kafka" / "users.ckpt"
    assert path.stat().st_mode & 0o777 == 0o600
    assert b"correct horse" not in path.read_bytes()


def test_two_writers_do_not_lose_users(tmp_path: Path) -> None:
    """As the node and `frazil users` are: each with its own handle on the folder."""

    def work(side: str) -> None:
        file = UserFile(RealDisk(tmp_path), random.SystemRandom(), SystemClock())
        for number in range(10):
            add(file, f"{side}{number}")

    threads = [threading.Thread(target=work, args=(side,)) for side in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = UserFile(RealDisk(tmp_path), random.SystemRandom(), SystemClock()).read()
    assert set(found.users) == {f"{side}{number}" for side in "ab" for number in range(10)}


def test_a_damaged_file_is_no_empty_one() -> None:
    """Otherwise denials would be lost."""
    disk = SimDisk()
    file = AccessFile(disk, ACLS_NAME, ACLS_KIND, AclTable)
    file.write(AclTable([ACL]))
    assert file.read() == AclTable([ACL])
    raw = disk.open(file.path, "edit")
    raw.write_at(20, bytes([raw.read(20, 1)[0] ^ 1]))
    with pytest.raises(Corrupt):
        AccessFile(disk, ACLS_NAME, ACLS_KIND, AclTable).read()


def test_a_full_disk_changes_nothing() -> None:
    disk = SimDisk()
    file = AccessFile(disk, ACLS_NAME, ACLS_KIND, AclTable)
    file.write(AclTable([ACL]))
    disk.faults = Faults(capacity_bytes=0)
    with pytest.raises(Overloaded, match="disk is full"):
        file.write(AclTable([]))
    assert AccessFile(disk, ACLS_NAME, ACLS_KIND, AclTable).read() == AclTable([ACL])
