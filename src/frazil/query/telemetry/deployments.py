"""Deployments: new versions of services, from the resource attribute `service.version`."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Annotated

from frazil.errors import TooLarge
from frazil.model import doc
from frazil.query.search.filters import ALWAYS, Ask, TimeRange, if_set, text, where
from frazil.query.sql.entry_spans import is_entry

LOOK_BACK = datetime.timedelta(hours=1)
"""A version that was seen this long before the time range is not new in it."""
VERSIONS_MAX = 10_000
VERSION = "resource_attributes['service.version']"
"""SQL of the version that a row comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A version of a service that was not seen before."""

    service: str
    version: str
    previous_version: Annotated[str, doc("The newest version before this one.")]
    time: Annotated[datetime.datetime, doc("Start of its first request.")]


def deployments(
    ask: Ask, *, service: str | None = None, within: TimeRange = ALWAYS
) -> list[Deployment]:
    """List new versions, oldest first. The first known version of a service is none: nothing says
    when it was deployed. A return to an earlier version is none, either."""
    since = None if within.since is None else within.since - LOOK_BACK
    conditions = [
        *TimeRange(since=since, until=within.until).conditions(),
        *if_set("service_name = {}", service, text),
        is_entry(),
        f"{VERSION} IS NOT NULL",
    ]
    rows = ask(
        f"SELECT service_name AS service, {VERSION} AS version, min(time) AS time FROM spans "
        f"{where(conditions)} GROUP BY 1, 2 LIMIT {VERSIONS_MAX + 1}"
    ).to_pylist()
    if len(rows) > VERSIONS_MAX:
        raise TooLarge(f"there are more than {VERSIONS_MAX} versions; use a shorter range")
    rows.sort(key=lambda row: (row["time"], row["service"], row["version"]))
    newest: dict[str, str] = {}
    found = []
    for row in rows:
        previous = newest.get(row["service"])
        newest[row["service"]] = row["version"]
        is_in_range = within.since is None or row["time"] >= within.since
        if previous is not None and is_in_range:
            found.append(Deployment(**row, previous_version=previous))
    return found
