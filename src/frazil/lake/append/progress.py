"""LakeActivity: what the lake's thread is doing to the tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeActivity:
    """Current step of an appender round or of maintenance. Owned by `Lake`, which replaces it as a
    whole, so any thread may read it."""

    work: Literal["round", "maintenance"]
    step: str
    """For display, such as "writing files", "committing" or "compacting files"."""
    begun_ms: int
    table: str | None = None
    """The table of this step, if it concerns only one."""
    task_count: int = 0
    """Tasks of the Spark job."""
    log_bytes: int = 0
    """Bytes of the log that the round covers."""
    done_bytes: int = 0
    """Of `log_bytes`, what is committed."""
    done_rows: int = 0


ReportActivity = Callable[[LakeActivity | None], None]
"""Told of every new step, and None at the end of the work."""
