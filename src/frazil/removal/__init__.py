"""removal: takes rows out of every place of a data folder, and proves it.

    remove.py   erase and apply_retention: tables first, then the copies in log and hot tier
    copies.py   which offsets log and hot tier still have of removed rows
    report.py   RemovalReport: what was removed, and what is left where
    status.py   RuleStatus: what each retention rule will remove, and when

The tables decide: a row is gone when the commit without it is made. Everything else on disk is a
copy of what the tables hold or held: older snapshots, log segments, files of the hot tier. Copies
are dropped, never edited, so a crash leaves too much and never too little.
"""

from frazil.removal.remove import Removal
from frazil.removal.report import RemovalPreview, RemovalReport, TableRemoval
from frazil.removal.status import RuleStatus, rule_statuses

__all__ = [
    "Removal",
    "RemovalPreview",
    "RemovalReport",
    "RuleStatus",
    "TableRemoval",
    "rule_statuses",
]
