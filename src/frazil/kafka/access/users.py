"""UserFile, Users: who may log in by SCRAM.

The node and `frazil users` change the same file, `kafka/users.ckpt`, each under a lock. The node
reads it again with each login.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Callable
from contextlib import closing

import msgspec

from frazil.disk import Disk, Lock, make_directories
from frazil.errors import Held, Malformed, TooLarge, Unavailable
from frazil.httpd import WorkerThreads
from frazil.kafka.access.files import AccessFile
from frazil.kafka.access.scram import ITERATIONS_MIN, SALT_BYTES, Mechanism, ScramCredential
from frazil.kafka.broker import FOLDER
from frazil.model import Clock, Rand

NAME = "users.ckpt"
LOCK_PATH = f"{FOLDER}/users.lock"
LOCK_WAIT_S_MAX = 5.0
LOCK_PAUSE_S = 0.02
KIND = b"KUSR"
SECRET_BYTES = 32
USERS_MAX = 10_000
NAME_CHARACTERS_MAX = 255
TOKEN_USER = "token"
"""Clients that log in with a token of the node, by SASL PLAIN."""
RESERVED = frozenset({TOKEN_USER, "ANONYMOUS", "*"})
DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyz"
"""Characters of the salts that Kafka's tools make."""

SALT_BYTES_MAX = 512
DRAWN_BYTES = SALT_BYTES_MAX + 128

SaltShape = tuple[int, int, bool]
"""Iterations, bytes of the salt, and whether it is text."""


class UserTable(msgspec.Struct, frozen=True):
    """All users, with their credentials."""

    secret: bytes
    """For salts of users that do not exist."""
    users: dict[str, dict[int, ScramCredential]] = {}
    """Credentials by name and number of the mechanism."""

    def with_credential(
        self, name: str, mechanism: Mechanism, credential: ScramCredential
    ) -> UserTable:
        check_user_name(name)
        if name not in self.users and len(self.users) >= USERS_MAX:
            raise TooLarge(f"there are {USERS_MAX} users, the most a node can have")
        return UserTable(
            self.secret,
            {**self.users, name: {**self.users.get(name, {}), mechanism: credential}},
        )

    def without(self, name: str, mechanism: Mechanism | None = None) -> UserTable:
        """Return a table without a credential of a user, or without the user."""
        kept = {
            number: credential
            for number, credential in self.users[name].items()
            if mechanism is not None and number != mechanism
        }
        users = {**self.users, name: kept}
        if not kept:
            del users[name]
        return UserTable(self.secret, users)


def shapes_of(table: UserTable, mechanism: Mechanism) -> list[SaltShape]:
    """Return how salts look, so that those of users that do not exist look the same."""
    credentials = [each[mechanism] for each in table.users.values() if mechanism in each]
    return sorted(
        {(c.iterations, len(c.salt), all(byte in DIGITS for byte in c.salt)) for c in credentials}
    )


def made_up_credential(
    name: str, mechanism: Mechanism, secret: bytes, shapes: list[SaltShape]
) -> ScramCredential:
    """Return a credential for a user that does not exist: the same one each time, and like those
    of others. Nobody knows its password."""
    seed = hmac.digest(secret, f"{mechanism} {name}".encode(), "sha256")
    drawn = hashlib.shake_256(seed).digest(DRAWN_BYTES)
    number = int.from_bytes(drawn[:8], "big")
    shape = shapes[number % len(shapes)] if shapes else (ITERATIONS_MIN, SALT_BYTES, False)
    iterations, salt_bytes, is_text = shape
    salt = drawn[8 : 8 + salt_bytes]
    if is_text:
        salt = bytes(DIGITS[byte % len(DIGITS)] for byte in salt)
    key = drawn[-mechanism.hash_bytes :]
    return ScramCredential(salt, iterations, key, key)


def check_user_name(name: str) -> None:
    """Raise `Malformed` if nobody can have this name."""
    if not name or len(name) > NAME_CHARACTERS_MAX or not name.isprintable():
        raise Malformed(f"a user name has 1 to {NAME_CHARACTERS_MAX} printable characters")
    if name in RESERVED:
        raise Malformed(f"the name {name} is reserved; choose another")


Change = Callable[[UserTable], UserTable]


class UserFile:
    """The file of users. Its methods wait for the disk."""

    def __init__(self, disk: Disk, rand: Rand, clock: Clock) -> None:
        self._disk = disk
        self._file = AccessFile(disk, NAME, KIND, UserTable)
        self._clock = clock
        self._new = UserTable(rand.randbytes(SECRET_BYTES))

    def read(self) -> UserTable:
        """Return all users. Raises `Corrupt` if the file is damaged."""
        return self._file.read() or self._new

    def change(self, change: Change) -> UserTable:
        """Change users, durably, whoever else does so. `change` may raise."""
        with closing(self._lock()):
            before = self.read()
            after = change(before)
            if after != before:
                self._file.write(after)
            return after

    def _lock(self) -> Lock:
        make_directories(self._disk, FOLDER)
        waited_s = 0.0
        while True:
            try:
                return self._disk.lock(LOCK_PATH, "users")
            except Held:
                if waited_s >= LOCK_WAIT_S_MAX:
                    raise Unavailable("another process is changing the users; retry") from None
            self._clock.sleep(LOCK_PAUSE_S)
            waited_s += LOCK_PAUSE_S


class Users:
    """The users of an open port. Owned by the event loop."""

    def __init__(self, file: UserFile, threads: WorkerThreads) -> None:
        """Read the file. Raises `Corrupt` if it is damaged."""
        self._file = file
        self._threads = threads
        self._turn = asyncio.Lock()
        self._reading = asyncio.Lock()
        self._read_count = 0
        self._set(file.read())

    def _set(self, table: UserTable) -> None:
        self.table = table
        self._shapes = {mechanism: shapes_of(table, mechanism) for mechanism in Mechanism}

    async def refresh(self) -> None:
        """Read the file again: `frazil users` may have changed it. Logins that wait meanwhile share
        the next read: they take one thread, however many they are."""
        count = self._read_count
        async with self._reading:
            if self._read_count > count:
                return  # another read has begun since, and ended
            self._read_count += 1
            found = await self._threads.run(self._file.read)
            if found is not self.table:
                self._set(found)

    async def change(self, change: Change) -> None:
        """Change users. Returns once that is durable; raises what `change` raises."""
        async with self._turn:
            self._set(await self._threads.run(self._file.change, change))

    def find(self, name: str, mechanism: Mechanism) -> tuple[ScramCredential, bool]:
        """Return a credential, and whether the user exists. Takes as long if not."""
        made_up = made_up_credential(name, mechanism, self.table.secret, self._shapes[mechanism])
        known = self.table.users.get(name, {}).get(mechanism)
        return (made_up, False) if known is None else (known, True)
