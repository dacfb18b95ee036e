"""log/external: reading the log from another process.

observer.py  Onlooker: what is durable, seen by a process that has no log
ranges.py    Stretch: offsets, read by a process that has no log
"""
