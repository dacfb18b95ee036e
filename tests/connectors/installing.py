"""Packages of connectors on the path, as pip would install them, without a network."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path


def install(folder: Path, module: Path, types: Mapping[str, str]) -> str:
    """Put a module into a folder with the entry points of its types (name -> attribute). Returns
    the PYTHONPATH that has it."""
    folder.mkdir(exist_ok=True)
    shutil.copy(module, folder)
    info = folder / f"{module.stem}-0.1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module.stem}\nVersion: 0.1.0\n")
    points = "".join(f"{name} = {module.stem}:{what}\n" for name, what in types.items())
    (info / "entry_points.txt").write_text(f"[frazil.connectors]\n{points}")
    earlier = os.environ.get("PYTHONPATH")
    return str(folder) if not earlier else f"{folder}{os.pathsep}{earlier}"
