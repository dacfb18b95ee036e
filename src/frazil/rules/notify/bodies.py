"""Notifications as JSON: Alertmanager's API v2, and plain webhooks."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from frazil.rules.notify.notification import Notification
from frazil.rules.template.values import float_text

WEBHOOK_VERSION = "1"
FINGERPRINT_CHARS = 16


def alertmanager_body(notifications: Sequence[Notification]) -> bytes:
    """Return the body of POST /api/v2/alerts."""
    return msgspec.json.encode(
        [
            {
                "labels": dict(each.labels),
                "annotations": dict(each.annotations),
                "startsAt": _time(each.starts_ms),
                "endsAt": _time(each.ends_ms),
                "generatorURL": each.url,
            }
            for each in notifications
        ]
    )


def webhook_body(notifications: Sequence[Notification]) -> bytes:
    """Return the body for a plain webhook."""
    alerts = [
        {
            "status": "resolved" if each.is_resolved else "firing",
            "labels": dict(each.labels),
            "annotations": dict(each.annotations),
            "value": float_text(each.value),
            "startsAt": _time(each.starts_ms),
            "endsAt": _time(each.ends_ms) if each.is_resolved else None,
            "url": each.url,
            "fingerprint": fingerprint(each.labels),
        }
        for each in notifications
    ]
    return msgspec.json.encode({"version": WEBHOOK_VERSION, "alerts": alerts})


def fingerprint(labels: Mapping[str, str]) -> str:
    """Return an id of an alert: the same for the same labels."""
    text = msgspec.json.encode(sorted(labels.items()))
    return hashlib.sha256(text).hexdigest()[:FINGERPRINT_CHARS]


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
