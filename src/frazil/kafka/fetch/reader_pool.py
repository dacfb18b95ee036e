"""ReaderPool: open readers, kept from one fetch to the next: they know their place in the file."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple

from frazil.log import Isolation, Partition, Reader

READERS_MAX = 512
"""Kept readers; each has a file open."""


class ReaderKey(NamedTuple):
    """Whose reader it is."""

    owner: int
    partition: Partition
    isolation: Isolation


class ReaderPool:
    """Thread-safe. A reader that is taken belongs to the taker until it is given back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: OrderedDict[ReaderKey, Reader] = OrderedDict()
        self._owners: set[int] = set()

    def add_owner(self, owner: int) -> None:
        with self._lock:
            self._owners.add(owner)

    def take(self, key: ReaderKey, offset: int) -> Reader:
        """Return a reader at this offset."""
        with self._lock:
            reader = self._idle.pop(key, None)
        if reader is not None:
            if reader.offset == offset:
                return reader
            reader.close()
        return Reader(key.partition, offset, isolation=key.isolation)

    def give(self, key: ReaderKey, reader: Reader) -> None:
        """Keep a reader, unless its owner has gone."""
        closing: list[Reader] = []
        with self._lock:
            if key.owner in self._owners:
                replaced = self._idle.pop(key, None)
                self._idle[key] = reader
                closing += [] if replaced is None else [replaced]
                if len(self._idle) > READERS_MAX:
                    closing.append(self._idle.popitem(last=False)[1])
            else:
                closing.append(reader)
        for each in closing:
            each.close()

    def drop_owner(self, owner: int) -> None:
        """Close the readers of a connection that has gone."""
        with self._lock:
            self._owners.discard(owner)
            gone = [key for key in self._idle if key.owner == owner]
            readers = [self._idle.pop(key) for key in gone]
        for reader in readers:
            reader.close()
