"""Jars that only tests need: fetched once at set-up, and none but the locked files is accepted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedJars:
    """The files that a lock names, in a folder of this user."""

    lock: Path
    """Digest and name of every file."""
    folder: Path

    def paths(self) -> list[Path]:
        """All of them, which must be there."""
        found = list(self._digests())
        missing = [path.name for path in found if not path.is_file()]
        assert not missing, f"run `make setup` while there is a network; missing: {missing}"
        return found

    def resolve(self, fetch: Callable[[], None]) -> None:
        """Have what is missing fetched."""
        wrong = self._wrong()
        if not wrong:
            return
        for path in wrong:
            path.unlink(missing_ok=True)  # resolution keeps a file that has the right name
        fetch()
        wrong = self._wrong()
        if wrong:
            raise SystemExit(
                f"these are not the files of {self.lock}: {wrong}; remove {self.folder}"
            )

    def _digests(self) -> dict[Path, str]:
        """File -> what its SHA-256 must be."""
        lines = [line.split() for line in self.lock.read_text(encoding="utf-8").splitlines()]
        return {self.folder / "jars" / name: digest for digest, name in lines}

    def _wrong(self) -> list[Path]:
        return [path for path, digest in self._digests().items() if _digest_of(path) != digest]


def _digest_of(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
