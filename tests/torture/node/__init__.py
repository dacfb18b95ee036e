"""The torturer of the whole node: killed and stopped at random, while everything it does goes on.

    run.py       a story: a node on one folder, and one act against it after the other
    acts.py      kill -9, SIGTERM, both, at the start, or only a child: what is done to a node
    load.py      senders of numbered records and of the demo's traffic; what was acknowledged
    asking.py    questions and flushes all the time, and what their answers must be
    judge.py     what SQL, PyIceberg and `frazil.open` show in the end, against what was promised
    remains.py   what a node leaves behind: processes, ports, half-written files

The node is real, with Spark, and keeps its folder and its ports through all of its lives.
"""
