"""Jars are downloaded once, checked, and then used without a network."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from frazil.errors import Unavailable
from frazil.lake.spark.jars import JARS, default_folder, paths, resolve

NOWHERE = "http://127.0.0.1:9/"
"""Nothing listens at the port of the discard service."""


@pytest.fixture
def offline(tmp_path: Path) -> list[str]:
    """Options that limit resolution to one unreachable repository."""
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="nowhere"/><resolvers>'
        f'<ibiblio name="nowhere" m2compatible="true" root="{NOWHERE}"/>'
        "</resolvers></ivysettings>",
        encoding="utf-8",
    )
    return ["--conf", f"spark.jars.ivySettings={settings}"]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A folder with the installed jars, without the cache of resolution."""
    folder = tmp_path / "spark"
    (folder / "jars").mkdir(parents=True)
    for path in paths(default_folder()):
        shutil.copy(path, folder / "jars")
    return folder


def test_missing_jars_name_the_file_and_the_command(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=rf"{JARS[0].file_name}.*run `frazil warm`"):
        paths(tmp_path)


def test_an_incomplete_jar_is_detected_by_its_size(copied: Path) -> None:
    torn = copied / "jars" / JARS[1].file_name
    torn.write_bytes(torn.read_bytes()[:-1])
    with pytest.raises(Unavailable, match=rf"{JARS[1].file_name}.*incomplete"):
        paths(copied)


def test_existing_jars_are_not_downloaded(copied: Path, offline: list[str]) -> None:
    assert resolve(copied, options=offline) == paths(copied)


def test_a_changed_jar_is_downloaded_again(copied: Path, offline: list[str]) -> None:
    """A file of the right name and size with other content is deleted. Here it cannot be
    downloaded, and the error has Spark's output."""
    changed = copied / "jars" / JARS[1].file_name
    data = bytearray(changed.read_bytes())
    data[len(data) // 2] ^= 1
    changed.write_bytes(data)
    with pytest.raises(Unavailable, match=r"could not download(?s:.*)sqlite-jdbc") as caught:
        resolve(copied, options=offline)
    assert "network" in str(caught.value)
    assert not changed.exists()


def test_the_lake_imports_without_pyspark_and_pyiceberg() -> None:
    program = (
        "import sys; sys.modules['pyspark'] = sys.modules['pyiceberg'] = None\n"
        "import frazil.settings, frazil.lake.spark.jars, frazil.lake.spark.session\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
