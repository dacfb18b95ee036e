"""cli: the command `frazil`. One file per verb; heavy modules are imported inside functions.

    entry_point.py  the verbs and exit codes
    options.py      flags that several verbs share
    connection.py   the node or data folder a verb works on
    data_folder.py  the log of a data folder, without a node
    otlp_target.py  the OTLP endpoint that telemetry is sent to
    times.py        times on the command line
    version.py      `--version`

    commands/       one file per verb
    kafka/          what the verbs of the Kafka port share
    grafana/        data sources and dashboards for Grafana
    views/          what commands print
    shell/          the interactive SQL shell
    terminal/       text, tables, colors and progress on a terminal

A verb is a module with `HELP`, `add_arguments(parser)` and `run(options)`, which returns the exit
code: 0 success, 1 failure, 2 wrong usage or settings, 130 Ctrl-C. The module docstring is its help
text. Results go to standard output, everything else to standard error.
"""

from frazil.cli.entry_point import main, parser

__all__ = ["main", "parser"]
