"""Jars that only tests need: fetched once by `make setup` and verified against a lock file."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyspark

from frazil.lake.spark.jars import RESOLVE_TIMEOUT_S

SPARK = Path(pyspark.__file__).parent / "jars"
OUTPUT_LINES_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedJars:
    """The jars in a lock file, kept in a folder of the user."""

    lock: Path
    """Lock file with the SHA-256 and name of every jar."""
    folder: Path

    def paths(self) -> list[Path]:
        """Return the paths of all jars, which must exist."""
        found = list(self._digests())
        missing = [path.name for path in found if not path.is_file()]
        assert not missing, f"run `make setup` with a network connection; missing: {missing}"
        return found

    def resolve(self, fetch: Callable[[], None]) -> None:
        """Call `fetch` if a jar is missing or wrong, and verify all jars."""
        wrong = self._wrong()
        if not wrong:
            return
        for path in wrong:
            path.unlink(missing_ok=True)  # resolution keeps an existing file of the right name
        fetch()
        wrong = self._wrong()
        if wrong:
            raise SystemExit(
                f"files do not match {self.lock}: {wrong}; remove {self.folder} and try again"
            )

    def fetch_with_ivy(self, module: str) -> None:
        """Fetch the jars of an Ivy module by Spark's own Ivy, which can name classifiers."""
        (ivy,) = SPARK.glob("ivy-*.jar")
        pattern = f"{self.folder}/jars/[organisation]_[artifact]-[revision](-[classifier]).[ext]"
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write(module)
            file.flush()
            command = [
                "java",
                "-jar",
                str(ivy),
                "-ivy",
                file.name,
                "-cache",
                f"{self.folder}/cache",
            ]
            command += ["-types", "jar", "bundle", "-confs", "default", "-retrieve", pattern]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=RESOLVE_TIMEOUT_S, check=False
            )
        if done.returncode != 0:
            output = "\n".join(done.stdout.splitlines()[-OUTPUT_LINES_SHOWN:])
            raise SystemExit(f"fetching the jars of {self.lock} failed:\n{output}")

    def _digests(self) -> dict[Path, str]:
        """Return path -> expected SHA-256."""
        lines = [line.split() for line in self.lock.read_text(encoding="utf-8").splitlines()]
        return {self.folder / "jars" / name: digest for digest, name in lines}

    def _wrong(self) -> list[Path]:
        return [path for path, digest in self._digests().items() if _digest_of(path) != digest]


def _digest_of(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
