"""The simulated machine: a disk that forgets and a clock that is told the time.

    disk.py     SimDisk: power cuts, kills, failed syncs, full disks, bit rot
    clock.py    SimClock: time moves only when a test moves it

All of it repeats from a seed.
"""
