"""Compile and fetch what no start should have to wait for. The only verb that needs a network."""

from __future__ import annotations

import argparse

HELP = "compile and fetch what no start should have to wait for"


def add_arguments(_: argparse.ArgumentParser) -> None:
    """There are none."""


def run(_: argparse.Namespace) -> int:
    """Compile and fetch ahead of time."""
    from frazil import ingest, lake, query
    from frazil.model import columns

    ingest.warm()
    columns.warm()
    query.warm()
    lake.warm()
    return 0
