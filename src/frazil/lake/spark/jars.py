"""The jars that Spark needs for Iceberg tables, downloaded once, at set-up.

Spark's own resolution downloads them into a folder of ours. The digests below pin their contents,
like the lock file of the Python packages.
"""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from frazil.errors import Unavailable

FIX = "run `frazil warm` once with network access"
RESOLVE_TIMEOUT_S = 600
"""60 MB over a slow connection."""
HARMLESS_PROGRAM = "org.apache.hadoop.util.VersionInfo"
"""Spark resolves jars before it runs a program. This one comes with Spark and prints a version."""
OUTPUT_LINES_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """A jar: Maven coordinates, size and digest."""

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
        """The name that Spark's resolution gives it."""
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
"""Modules of the extra `lake`."""


def default_folder() -> Path:
    """Return the user's folder of jars, shared by all data folders and environments."""
    return Path.home() / ".cache" / "frazil" / "spark"


def paths(folder: Path) -> list[Path]:
    """Return the paths of the jars. Raises `Unavailable` if one is missing or incomplete."""
    jars = [_path(folder, jar) for jar in JARS]
    for jar, path in zip(JARS, jars, strict=True):
        if not path.is_file() or path.stat().st_size != jar.length_bytes:
            raise Unavailable(f"the lake needs {path}, which is missing or incomplete; {FIX}")
    return jars


def wrong_jars(folder: Path) -> list[tuple[Path, str]]:
    """Return the jars that are not usable, and what is wrong with each. Reads them completely."""
    problems = []
    for jar in JARS:
        path = _path(folder, jar)
        if not path.is_file():
            problems.append((path, "is missing"))
        elif path.stat().st_size != jar.length_bytes:
            problems.append((path, f"has {path.stat().st_size} of {jar.length_bytes} bytes"))
        elif not _is_intact(path, jar):
            problems.append((path, f"has other content: its SHA-256 is not {jar.sha256}"))
    return problems


def resolve(folder: Path, *, options: Sequence[str] = ()) -> list[Path]:
    """Download missing jars, and check all of them. `options` are passed to spark-submit."""
    for jar in JARS:
        if not _is_intact(_path(folder, jar), jar):
            # Resolution keeps any file that has the right name.
            _path(folder, jar).unlink(missing_ok=True)
    if not all(_path(folder, jar).is_file() for jar in JARS):
        fetch(folder, [jar.coordinates for jar in JARS], options=options)
    for jar in JARS:
        if not _is_intact(_path(folder, jar), jar):
            raise Unavailable(
                f"{_path(folder, jar)} is not the expected file (its SHA-256 is not "
                f"{jar.sha256}); remove {folder} and {FIX}"
            )
    return paths(folder)


def is_installed() -> bool:
    """Return whether the Python packages of the lake are installed."""
    return all(importlib.util.find_spec(module) is not None for module in NEEDED)


def warm(folder: Path | None = None) -> None:
    """Download the jars, if the lake's packages are installed."""
    if is_installed():
        resolve(folder or default_folder())


def _path(folder: Path, jar: Jar) -> Path:
    return folder / "jars" / jar.file_name


def _is_intact(path: Path, jar: Jar) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == jar.sha256
    except FileNotFoundError:
        return False


def fetch(folder: Path, coordinates: Sequence[str], *, options: Sequence[str] = ()) -> None:
    """Download jars and their dependencies with spark-submit."""
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
            f"{', '.join(coordinates)} took longer than {RESOLVE_TIMEOUT_S} s to download; {FIX}"
        ) from None
    if done.returncode != 0:
        output = "\n".join(done.stdout.splitlines()[-OUTPUT_LINES_MAX:])
        raise Unavailable(
            f"Spark could not download {', '.join(coordinates)}. It needs Java 17 or newer, and "
            f"network access this once. Its output:\n{output}"
        )


def _spark_submit() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent / "bin" / "spark-submit"
