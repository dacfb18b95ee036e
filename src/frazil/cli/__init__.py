"""cli: the command `frazil`. One file per verb; what is heavy is imported where it is needed.

    connection.py   which node to ask, or which folder
    data_folder.py  the log of a data folder, without a node
    entry_point.py  the command: its verbs, its exit codes
    logging.py      what the program says on standard error while it works
    options.py      flags that several verbs have
    otlp_target.py  where telemetry is sent
    times.py        times on the command line
    version.py      which Frazil this is

    commands/       one file per verb
    shell/          the interactive SQL shell
    terminal/       text, tables, colors and progress on a terminal
    views/          what commands print

A verb is a module with `HELP`, `add_arguments(parser)` and `run(options)`, which returns the exit
code: 0 is well, 1 is a failure, 2 is a wrong use or wrong settings, 130 is Ctrl-C. Results go to
standard output, everything else to standard error.
"""

from frazil.cli.entry_point import main, parser

__all__ = ["main", "parser"]
