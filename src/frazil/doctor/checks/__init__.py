"""doctor/checks: one file per subject.

settings.py     invalid settings
python.py       Python, libraries, compiled code
data_folder.py  permissions, file system, disk space, sync latency
log.py          damage in the log
clock.py        the system clock
limits.py       open files, memory
credentials.py  certificates, keys, tokens
ports.py        ports: free, or in use by which process
node.py         the running node; OTLP variables of this shell
java.py         Java
spark.py        jars, and a Spark session
catalog.py      the Iceberg catalog

mounts.py       file systems of paths
processes.py    programs, processes, listening sockets
"""
