"""The torturer: breaks the log and the node in every way we know, and proves what survived.

__main__.py   the command: one kind, a number of cycles, a seed; prints a JSON verdict last
ids.py        records that carry their identity and can be made again from it
history.py    what was asked and answered; a recorder in its own process
checker.py    a pure function from history and observations to a verdict
actors.py     producers that send, retry and repeat
sim.py        seeded simulation: crashes, failed syncs, full disks, jumping clocks
rot.py        bits flipped, pages zeroed, swapped, cut at every byte
workload.py   a real process that appends to a real disk until it is killed
kill9.py      SIGKILL at random moments, also during recovery
syscall.py    SIGKILL, EIO and ENOSPC at every storage call in turn
powercut.py   an ext4 image whose power is cut
lost_answer.py  answers that senders never hear, also across kill -9 of the node
overload.py   ten times what the node can take, over both transports
rows.py       kill -9 of a node that seals, files of the hot tier spoilt: SQL must not notice
lake/         an appender broken at every step: each row once, each snapshot a prefix of the log
tiers.py      counts asked for all the time, while Spark commits, compacts, and hot rows go
node/         a whole node with its Spark, killed and stopped at random amid everything it does
mutants.py    faults of our own making, which the torturer must find
"""
