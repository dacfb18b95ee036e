"""LakeActivity: what the lake's thread does to the tables now, for whoever looks from outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeActivity:
    """One moment of a round, or of maintenance. Put in place as a whole, so any thread may look."""

    work: Literal["round", "maintenance"]
    step: str
    """In words, as people would say it: writes files, commits, joins files."""
    begun_ms: int
    table: str | None = None
    """Which one, where it is about one."""
    task_count: int = 0
    """Of the job on Spark."""
    log_bytes: int = 0
    """What the round takes from the log."""
    done_bytes: int = 0
    """Of these, what is committed."""
    done_rows: int = 0
