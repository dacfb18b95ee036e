"""The cases of Prometheus' own PromQL tests, as data: `python -m tests.languages.promql.corpus`
makes them from the Go module, which Go downloads; with --check it only compares."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
from pathlib import Path

import msgspec

from tests.languages.promql.scripts import Command, commands_of

MODULE = "github.com/prometheus/prometheus@v0.315.0"
CASES = Path(__file__).parent / "promqltest.json.gz"
CORE = (
    "aggregators",
    "at_modifier",
    "collision",
    "functions",
    "histograms",
    "literals",
    "name_label_dropping",
    "operators",
    "range_queries",
    "selectors",
    "staleness",
    "subquery",
    "trig_functions",
)
SCRIPTS = (*CORE, "native_histograms")


def cases() -> dict[str, list[Command]]:
    """Read the stored cases, by script."""
    return msgspec.json.decode(gzip.decompress(CASES.read_bytes()), type=dict[str, list[Command]])


def cases_of_module() -> dict[str, list[Command]]:
    """Download the module and read its scripts."""
    listed = subprocess.run(
        ["go", "mod", "download", "-json", MODULE],
        check=True,
        capture_output=True,
        cwd=Path(__file__).parent,
        env={**os.environ, "GOFLAGS": "-mod=mod"},
    )
    folder = Path(json.loads(listed.stdout)["Dir"]) / "promql" / "promqltest" / "testdata"
    return {name: commands_of((folder / f"{name}.test").read_text()) for name in SCRIPTS}


def main() -> None:
    """Write the cases, or compare them."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true")
    if options.parse_args().check:
        assert cases() == cases_of_module(), f"{CASES.name} is not what {MODULE} has"
        return
    CASES.write_bytes(gzip.compress(msgspec.json.encode(cases_of_module()), mtime=0))


if __name__ == "__main__":
    main()
