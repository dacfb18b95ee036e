"""transactions: which records of a partition are decided, and which were aborted.

    markers.py        the control records that commit or abort a transaction
    aborted.py        AbortedTransactions: what readers skip
    aborted_file.py   AbortedFile: the same on disk, for recovery and for other processes
    state.py          Transactions: open and aborted ones of one partition

A transactional producer writes batches, then one marker to each of its partitions. Records below
the *last stable offset* are decided: their transaction has its marker, or they had none. Committed
readers stop there and skip aborted batches.
"""
