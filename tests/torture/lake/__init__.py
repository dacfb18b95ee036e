"""The torturer of the lake: an appender is broken at named steps, and another one goes on.

    run.py       cycles: a life that is broken, a judgement, a life that is not, a judgement
    folder.py    a data folder with its tables, lives in it, and what is known of it
    load.py      requests that can be made again from their number, and who was promised what
    life.py      a process with a log and an appender, until it ends or is ended
    breaks.py    the named steps, and what happens at them
    outside.py   what is broken from without: power, disks, the catalog, a process that is stopped
    spark.py     the same on real Spark: its processes are killed
    judge.py     what the tables hold, by PyIceberg, pyarrow and DuckDB, against what must be there
    mutants.py   appenders that are wrong, which the judge must find
    warm.py      what lives are forked from

Tasks run in the appender's own process, so that a cycle takes a second; those of `spark.py` do not.
"""
