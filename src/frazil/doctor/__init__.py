"""doctor: checks everything a node needs, with a fix for each problem.

    checkup.py  run all checks
    context.py  CheckContext: what the checks examine
    finding.py  Finding: the result of a check, and the line that fixes it

    checks/     one file per subject

A check is a function that takes a context and yields findings. It changes nothing and takes no lock
that a node needs.
"""

from frazil.doctor.checkup import CHECKS, examine, findings_of
from frazil.doctor.context import CheckContext
from frazil.doctor.finding import Finding, Fix, Level

__all__ = ["CHECKS", "CheckContext", "Finding", "Fix", "Level", "examine", "findings_of"]
