"""doctor: looks at everything that a node needs, and says what to do about what it finds.

    examine.py    all checks, one after the other
    finding.py    Finding: what one look has found, and the line that mends it
    case.py       Case: what is looked at

    settings.py   settings that are refused
    program.py    Python, libraries, compiled code
    folder.py     the data folder: rights, file system, room, sync
    mounts.py     which file system a path is on
    records.py    the log: can it be read?
    clock.py      the clock
    limits.py     open files, memory
    access.py     certificates, keys, tokens
    ports.py      ports: free, or taken by whom
    programs.py   programs of the machine, and who listens
    node.py       a node that runs; where this shell's applications send to
    java.py       Java
    spark.py      jars, and a session of Spark
    catalog.py    the catalog

A check is a function that is given a case and yields findings. It changes nothing, and takes no
lock that a node would miss.
"""

from frazil.doctor.case import Case
from frazil.doctor.examine import CHECKS, examine, findings_of
from frazil.doctor.finding import Finding, Fix, Level

__all__ = ["CHECKS", "Case", "Finding", "Fix", "Level", "examine", "findings_of"]
