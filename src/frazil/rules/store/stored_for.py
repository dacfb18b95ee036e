"""Reads ALERTS_FOR_STATE after a restart: since when alerts are active."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from frazil.model import NS_PER_MS
from frazil.results import CancelToken, Limits, Result, bind_parameters
from frazil.rules.samples import ALERTS_FOR_STATE, LabelPairs
from frazil.rules.state.restore import LastState, StoredFor
from frazil.rules.store.log_series import SCOPE
from frazil.rules.store.series_labels import labels_of

ROWS_MAX = 100_000
"""The latest samples; an hour of a thousand alerts is less."""
NO_VALUE = 1
"""Flag of a point that says that its series has ended."""

QUERY = """
SELECT resource_attributes, attributes, time_unix_nano, value_double, flags FROM metrics
WHERE metric_name = $name AND scope_name = $scope AND time >= $begin
ORDER BY time_unix_nano DESC LIMIT $rows
"""


def read_stored_for(
    sql: Callable[[str, Limits, CancelToken], Result],
    now_ms: int,
    *,
    outage_ms: int,
    grace_ms: int,
    limits: Limits,
) -> StoredFor:
    """Return the alerts that were active when they were last evaluated, at most `outage_ms` ago."""
    text = bind_parameters(
        QUERY,
        {
            "name": ALERTS_FOR_STATE,
            "scope": SCOPE,
            "begin": datetime.fromtimestamp((now_ms - outage_ms) / 1000, UTC),
            "rows": ROWS_MAX,
        },
    )
    states: dict[LabelPairs, LastState] = {}
    ended: set[LabelPairs] = set()
    with sql(text, limits, CancelToken()) as result:
        for resource, attributes, time_ns, value, flags in result.fetchall():
            labels = labels_of(resource, attributes)
            if labels in states or labels in ended:
                continue
            if flags & NO_VALUE or value is None:
                ended.add(labels)
            else:
                states[labels] = LastState(int(value) * 1000, time_ns // NS_PER_MS)
    return StoredFor(states, grace_ms)
