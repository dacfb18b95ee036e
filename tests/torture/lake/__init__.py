"""Torture tests of the lake: an appender is broken at a named step, and a new one continues.

    run.py       cycles: a life with a fault, a check, a life without faults, a check
    folder.py    a data folder with its tables, and its expected contents
    load.py      requests derived from their number, and the ledger of acknowledged ones
    life.py      a process with a log and an appender, until it ends or is killed
    breaks.py    the named steps, and the faults injected there
    outside.py   faults from outside: stopped processes, power cuts, full disks, a damaged log
    spark.py     the same on real Spark, whose processes are killed
    judge.py     compares the tables, read by PyIceberg, pyarrow and DuckDB, with the log
    mutants.py   appenders with deliberate bugs that the checks must detect
    warm.py      modules preloaded by the fork server

Tasks run in the appender's process, so that a cycle takes a second, except in spark.py.
"""
