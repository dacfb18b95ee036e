"""A step of making a wheel: the web page goes into it, built if it is not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface[Any]):
    """Called by hatchling before it packs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page. What is installed from a working folder is built by `make` instead."""
        if version == "editable":
            return
        script = Path(self.root) / "ui" / "build.py"
        subprocess.run([sys.executable, str(script), "--if-possible"], check=True)
