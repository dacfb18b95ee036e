"""Torture tests of a whole node: killed and stopped at random under load.

    run.py       a run: one node on one folder, and one fault after the other
    acts.py      the faults: kill -9, SIGTERM, both, during startup, or only a child process
    load.py      clients that send numbered records and demo traffic; what was acknowledged
    asking.py    continuous queries and flushes, and checks of their results
    judge.py     the final rows of SQL, PyIceberg and `frazil.open` against the ledger
    full_disk.py a disk of its own that fills, by its tables and by another program
    remains.py   leftovers of a node: processes, ports, half-written files

The node is a real process with Spark, and keeps its folder and its ports across restarts.
"""
