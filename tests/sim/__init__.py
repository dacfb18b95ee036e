"""A simulated disk and clock for tests.

    disk.py     SimDisk: power cuts, kills, failed syncs, full disks, bit rot
    clock.py    SimClock: time moves only when a test moves it

A run is reproducible from its seed.
"""
