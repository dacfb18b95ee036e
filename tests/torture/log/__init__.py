"""Torture tests of the log, on a simulated disk and on real ones.

actors.py     producers that send, retry and repeat
keyed.py      a compacted topic and its producers
sim.py        seeded simulation: crashes, failed syncs, full disks, clock jumps
rot.py        flipped bits, zeroed or swapped pages, files cut at every byte
workload.py   a process that appends to a real disk until it is killed
kill9.py      SIGKILL at random moments, also during recovery
syscall.py    SIGKILL, EIO and ENOSPC at every storage call in turn
powercut.py   an ext4 image whose power is cut
mutants.py    deliberate bugs that these tests must detect
"""
