"""The jars Spark needs for the tables: fetched once, at set-up; afterwards files, and no network.

Spark's own resolution fetches them into a folder of ours. Like the lock of the Python packages, the
digests below say which files those are; nothing else is accepted.
"""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from frazil.errors import Unavailable

MEND = "run `frazil warm` once while there is a network"
RESOLVE_TIMEOUT_S = 600
"""60 MB, also over a slow line."""
HARMLESS_PROGRAM = "org.apache.hadoop.util.VersionInfo"
"""Spark resolves before it runs a program. This one comes with it, and prints a version."""
OUTPUT_LINES_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """One file, by its coordinates and by what must be in it."""

    group: str
    artifact: str
    version: str
    length_bytes: int
    sha256: str

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file_name(self) -> str:
        """What Spark's resolution calls it."""
        return f"{self.group}_{self.artifact}-{self.version}.jar"


JARS = (
    Jar(
        group="org.apache.iceberg",
        artifact="iceberg-spark-runtime-4.1_2.13",
        version="1.12.0",
        length_bytes=48_309_426,
        sha256="3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
    ),
    Jar(
        group="org.xerial",
        artifact="sqlite-jdbc",
        version="3.53.4.0",
        length_bytes=12_002_370,
        sha256="bcb1f51e36f940867e83342f9efbf5968ac44a6bef4d397bb4af7b17b45cd2fb",
    ),
)


NEEDED = ("pyiceberg", "pyspark")
"""Modules, of an extra of their own."""


def default_folder() -> Path:
    """Where the jars of this user are, for every data folder and every environment."""
    return Path.home() / ".cache" / "frazil" / "spark"


def paths(folder: Path) -> list[Path]:
    """The jars as files. `Unavailable` if one is not there, or was not written to its end."""
    found = [_place(folder, jar) for jar in JARS]
    for jar, path in zip(JARS, found, strict=True):
        if not path.is_file() or path.stat().st_size != jar.length_bytes:
            raise Unavailable(f"the lake needs {path}, which is not there or incomplete; {MEND}")
    return found


def wrong_jars(folder: Path) -> list[tuple[Path, str]]:
    """The jars that could not be used, and what is wrong with each. Reads them from end to end."""
    found = []
    for jar in JARS:
        path = _place(folder, jar)
        if not path.is_file():
            found.append((path, "is not there"))
        elif path.stat().st_size != jar.length_bytes:
            found.append((path, f"has {path.stat().st_size} of {jar.length_bytes} bytes"))
        elif not _is_whole(path, jar):
            found.append((path, f"has other bytes: its SHA-256 is not {jar.sha256}"))
    return found


def resolve(folder: Path, *, options: Sequence[str] = ()) -> list[Path]:
    """Fetch what is missing, and check all of it. `options` are handed to Spark's resolution."""
    for jar in JARS:
        if not _is_whole(_place(folder, jar), jar):
            # Resolution keeps a file that has the right name.
            _place(folder, jar).unlink(missing_ok=True)
    if not all(_place(folder, jar).is_file() for jar in JARS):
        fetch(folder, [jar.coordinates for jar in JARS], options=options)
    for jar in JARS:
        if not _is_whole(_place(folder, jar), jar):
            raise Unavailable(
                f"{_place(folder, jar)} is not the file Frazil was made with (its SHA-256 is not "
                f"{jar.sha256}); remove {folder} and {MEND}"
            )
    return paths(folder)


def is_installed() -> bool:
    """Is there all in Python that a lake needs?"""
    return all(importlib.util.find_spec(module) is not None for module in NEEDED)


def warm(folder: Path | None = None) -> None:
    """Set-up: have the jars, if Spark is installed. Without it there is no lake, and no need."""
    if is_installed():
        resolve(folder or default_folder())


def _place(folder: Path, jar: Jar) -> Path:
    return folder / "jars" / jar.file_name


def _is_whole(path: Path, jar: Jar) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == jar.sha256
    except FileNotFoundError:
        return False


def fetch(folder: Path, coordinates: Sequence[str], *, options: Sequence[str] = ()) -> None:
    """Have Spark fetch jars, and whatever they need that does not come with it."""
    command = [str(_spark_submit()), "--master", "local[1]", "--packages", ",".join(coordinates)]
    command += ["--conf", f"spark.jars.ivy={folder}", *options]
    command += ["--class", HARMLESS_PROGRAM, "spark-internal"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=RESOLVE_TIMEOUT_S,
            check=False,
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(
            f"{', '.join(coordinates)} did not come within {RESOLVE_TIMEOUT_S} s; {MEND}"
        ) from None
    if done.returncode != 0:
        shown = "\n".join(done.stdout.splitlines()[-OUTPUT_LINES_SHOWN:])
        raise Unavailable(
            f"Spark could not fetch {', '.join(coordinates)}. It needs Java 17 or newer, and a "
            f"network this once. It said:\n{shown}"
        )


def _spark_submit() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent / "bin" / "spark-submit"
