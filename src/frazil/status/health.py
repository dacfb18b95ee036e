"""Checks: the health of each component, with cause and remedy, and the text of `/readyz`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from frazil.model import doc

Health = Literal["ok", "degraded", "failed"]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """State of one component."""

    component: str
    state: Health
    why: Annotated[str | None, doc("What is wrong, or worth knowing.")] = None
    next_step: Annotated[str | None, doc("What to do; null if nothing.")] = None


def is_ready(checks: Iterable[Check]) -> bool:
    """Return whether the node should receive requests."""
    return all(check.state != "failed" for check in checks)


def readiness_text(checks: list[Check]) -> str:
    """One line per component in the format of Kubernetes, then the verdict."""
    verdict = "readyz check passed" if is_ready(checks) else "readyz check failed"
    return "".join(f"{_line(check)}\n" for check in checks) + f"{verdict}\n"


def _line(check: Check) -> str:
    sign = "[-]" if check.state == "failed" else "[+]"
    text = "; ".join(part for part in (check.why, check.next_step) if part is not None)
    text = " ".join(text.split())  # messages of Spark have line breaks
    return f"{sign}{check.component} {check.state}{f': {text}' if text else ''}"
