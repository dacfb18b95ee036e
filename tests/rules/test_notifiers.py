"""Notifications: who is sent what, what is repeated, and what is given up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from frazil.errors import Malformed, Unavailable
from frazil.rules.notify import notifier as notifiers
from frazil.rules.notify.notification import Notification
from frazil.rules.notify.notifier import Kind, Notifier
from frazil.rules.notify.post import post_json
from tests.rules.receiver import receiver

BEGIN_MS = 1_700_000_000_000


def notification(name: str, *, is_change: bool = True, is_resolved: bool = False) -> Notification:
    return Notification(
        labels={"alertname": name},
        annotations={"summary": "s"},
        value=1.5,
        starts_ms=BEGIN_MS,
        ends_ms=BEGIN_MS + 1000,
        is_resolved=is_resolved,
        is_change=is_change,
        url="http://page/alerts?rule=a",
    )


@contextmanager
def started(kind: Kind, url: str, **more: Any) -> Iterator[Notifier]:
    notifier = Notifier(kind, url, **{"queue_max": 100, **more})
    notifier.start()
    try:
        yield notifier
    finally:
        notifier.close()


def test_an_alertmanager_is_sent_everything_and_a_webhook_changes() -> None:
    with receiver() as one, receiver() as two:
        with (
            started("alertmanager", f"{one.url}/am/") as manager,
            started("webhook", f"{two.url}/hook?key=1") as hook,
        ):
            for notifier in (manager, hook):
                notifier.add([notification("a"), notification("b", is_change=False)])
                notifier.add([notification("c", is_resolved=True)])
            one.wait_for(1)
            two.wait_for(1)
        assert {path for path, _ in one.taken} == {"/am/api/v2/alerts"}
        sent = [each for _, body in one.taken for each in body]
        assert [each["labels"]["alertname"] for each in sent] == ["a", "b", "c"]
        assert sent[0]["startsAt"] == "2023-11-14T22:13:20.000+00:00"
        assert sent[0]["generatorURL"] == "http://page/alerts?rule=a"
        assert {path for path, _ in two.taken} == {"/hook?key=1"}
        heard = [each for _, body in two.taken for each in body["alerts"]]
        assert [(each["labels"]["alertname"], each["status"]) for each in heard] == [
            ("a", "firing"),
            ("c", "resolved"),
        ]
        assert heard[0]["value"] == "1.5"
        assert heard[0]["endsAt"] is None


def test_what_fails_is_repeated_in_order(monkeypatch: Any) -> None:
    monkeypatch.setattr(notifiers, "PAUSE_S", 0.01)
    with receiver() as one:
        one.status = 503
        with started("webhook", one.url) as notifier:
            notifier.add([notification("a")])
            one.wait_for(0, attempts=3)
            notifier.add([notification("b")])
            one.status = 200
            one.wait_for(1)
            while notifier.report().waiting_count:
                one.wait_for(2)
        names = [each["labels"]["alertname"] for _, body in one.taken for each in body["alerts"]]
        assert names == ["a", "b"]
        report = notifier.report()
        assert report.failed_count >= 3
        assert (report.sent_count, report.dropped_count, report.last_error) == (2, 0, None)


def test_a_refused_body_is_dropped_and_counted() -> None:
    with receiver() as one:
        one.status = 400
        with started("webhook", one.url) as notifier:
            notifier.add([notification("a")])
            one.wait_for(0, attempts=1)
        report = notifier.report()
        assert (report.sent_count, report.dropped_count) == (0, 1)
        assert "answered 400" in str(report.last_error)


def test_a_full_queue_drops_the_oldest_and_adding_never_waits() -> None:
    is_held, may_go = threading.Event(), threading.Event()
    bodies: list[bytes] = []

    def post(_: str, body: bytes) -> None:
        bodies.append(body)
        is_held.set()
        may_go.wait(30)

    with started("webhook", "http://127.0.0.1:1", queue_max=3, post=post) as notifier:
        notifier.add([notification("first")])
        assert is_held.wait(30)
        notifier.add([notification(name) for name in "abcde"])
        assert notifier.report().waiting_count == 3
        assert notifier.report().dropped_count == 2
        may_go.set()
    assert [name for name in "abcde" if any(f'"{name}"'.encode() in b for b in bodies)] == [
        *"cde",
    ]


def test_an_error_names_the_receiver_without_its_secrets() -> None:
    for url in ("http://user:secret@127.0.0.1:1/secret", "http://127.0.0.1:1/?secret"):
        try:
            post_json(url, b"{}")
        except (Unavailable, Malformed) as error:
            assert "http://127.0.0.1:1 cannot be reached" in str(error)
            assert "secret" not in str(error)
