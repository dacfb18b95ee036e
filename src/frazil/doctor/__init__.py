"""doctor: looks at everything that a node needs, and says what to do about what it finds.

    checkup.py  all checks, one after the other
    context.py  CheckContext: what is looked at
    finding.py  Finding: what one look has found, and the line that mends it

    checks/     one file per check

A check is a function that is given a case and yields findings. It changes nothing, and takes no
lock that a node would miss.
"""

from frazil.doctor.checkup import CHECKS, examine, findings_of
from frazil.doctor.context import CheckContext
from frazil.doctor.finding import Finding, Fix, Level

__all__ = ["CHECKS", "CheckContext", "Finding", "Fix", "Level", "examine", "findings_of"]
