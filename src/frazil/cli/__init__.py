"""cli: the command `frazil`. One file per verb; what is heavy is imported where it is needed.

    command.py     the command: its verbs, its exit codes
    options.py     flags that several verbs have
    where.py       which node to ask, or which folder
    endpoint.py    where telemetry is sent
    progress.py    how far long work has come, on standard error
    waiting.py     how far it is while somebody waits
    times.py       times on the command line
    logs.py        what the program says on standard error while it works

    cells.py       text for a terminal: its width, and nothing in it that the terminal obeys
    colours.py     Paint: colours, where they are wanted
    table.py       Table: rows in boxes, or a line for each column
    shown.py       rows of a result as such cells
    quantities.py  times, durations, sizes as people read them
    severities.py  how bad a log record is, as a word and a colour
    folder.py      the log of a data folder, without a node
    version.py     which Frazil this is
    target.py      standard output, or a file that is there whole or not at all

    up.py          run a node
    greeting.py    what that tells a human
    demo.py        send the telemetry of a small shop
    export.py      write telemetry as lines of OTLP/JSON
    importing.py   import: send such lines to a node
    doctor.py      look at all that a node needs
    sql.py         ask in SQL
    sql_output.py  rows as a table, JSON, CSV, Arrow or Parquet
    repl.py        Repl: the shell of `frazil sql`
    repl_commands.py  its commands
    repl_history.py   what was written before
    repl_words.py     what it can complete
    tail.py        records as they come in
    tail_lines.py  such a record as a line
    trace.py       a trace, or the newest ones
    waterfall.py   a trace, drawn
    status.py      how a node does
    status_screen.py  that on one screen
    topics.py      what the log has
    subscribers.py    who reads it
    repair.py      damage in it, set aside
    flush.py       bring what is durable into tables
    maintain.py    join small files of the tables, and tidy up
    appender.py    fill tables from a Kafka
    pyspark.py     PySpark over a data folder
    warm.py        compile and fetch ahead
    completion.py  what a shell can complete
    completion_scripts.py  scripts that do so
    init.py        write a commented frazil.toml
    config.py      what is set, and where

A verb is a module with `HELP`, `add_arguments(parser)` and `run(options)`, which returns the exit
code: 0 is well, 1 is a failure, 2 is a wrong use or wrong settings, 130 is Ctrl-C. Results go to
standard output, everything else to standard error.
"""

from frazil.cli.command import main, parser

__all__ = ["main", "parser"]
