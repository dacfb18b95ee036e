"""Torture tests of frozen keyed tables: a freeze or a compaction is broken at a named step, and a
new process continues.

    run.py       cycles: a life with a fault, a check, a life without faults, a check
    life.py      a process that writes, freezes, compacts and expires, until it ends or is killed
    breaks.py    the named steps, and the faults injected there
    judge.py     compares every snapshot with the fold of the log below its offsets
    mutants.py   bugs put in on purpose

Tasks run in the process itself, so that a cycle takes a second.
"""
