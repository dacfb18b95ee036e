"""Write files from which Grafana provisions data sources for a node, links between them, and four
dashboards."""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path

from frazil.cli.connection import URL
from frazil.cli.options import add_json
from frazil.errors import Malformed

HELP = "Write data sources and dashboards for Grafana"
FOLDER = "grafana"
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(required=True, metavar="WHAT", dest="what")
    provision = verbs.add_parser("provision", help="Write provisioning files", description=__doc__)
    provision.add_argument(
        "--url", help=f"URL of the node, as Grafana reaches it (default: $FRAZIL_URL, else {URL})"
    )
    provision.add_argument(
        "--out", metavar="DIR", default=FOLDER, help=f"folder to write to ({FOLDER})"
    )
    provision.add_argument(
        "--dashboards-path",
        metavar="DIR",
        help="where Grafana finds the folder of dashboards (default: where it is written)",
    )
    provision.add_argument(
        "--token-variable",
        metavar="NAME",
        help="variable in Grafana's environment that has the token of the node",
    )
    add_json(provision, "print one JSON object")


def run(options: argparse.Namespace) -> int:
    from frazil.cli.grafana.files import DASHBOARD_FOLDER, provisioning_files, write_files
    from frazil.settings import check_url

    url = options.url or os.environ.get("FRAZIL_URL") or URL
    check_url(url, "--url")
    variable = options.token_variable
    if variable is not None and VARIABLE.fullmatch(variable) is None:
        raise Malformed(f"--token-variable {variable} is not the name of a variable")
    folder = Path(options.out).absolute()
    dashboards = options.dashboards_path or str(folder / DASHBOARD_FOLDER)
    files = provisioning_files(url, variable, dashboards)
    write_files(folder, files)
    if options.json:
        print(json.dumps({"folder": str(folder), "files": sorted(files)}))
        return 0
    for path in files:
        print(folder / path)
    return 0
