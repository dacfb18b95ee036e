"""doctor/checks: one file per check.

catalog.py      the catalog
clock.py        the clock
credentials.py  certificates, keys, tokens
data_folder.py  the data folder: rights, file system, room, sync
java.py         Java
limits.py       open files, memory
log.py          the log: can it be read?
mounts.py       which file system a path is on
node.py         a node that runs; where this shell's applications send to
ports.py        ports: free, or taken by whom
processes.py    programs of the machine, and who listens
python.py       Python, libraries, compiled code
settings.py     settings that are refused
spark.py        jars, and a session of Spark
"""
