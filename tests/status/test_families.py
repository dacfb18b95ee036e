"""Metrics of several processes are joined: each name once, equal samples added up."""

from __future__ import annotations

from frazil.status import Family, Point, merged


def family(name: str, *points: Point) -> Family:
    return Family(name=name, kind="counter", help_text="Things.", points=points)


def test_equal_samples_are_added_up() -> None:
    logs, spans = (("signal", "logs"),), (("signal", "spans"),)
    writer = [family("a", Point(value=1, labels=logs), Point(value=2, labels=spans)), family("b")]
    reader = [family("a", Point(value=10, labels=logs)), family("c", Point(value=5))]
    assert list(merged([*writer, *reader])) == [
        family("a", Point(value=11, labels=logs), Point(value=2, labels=spans)),
        family("b"),
        family("c", Point(value=5)),
    ]


def test_suffixes_of_a_histogram_stay_apart() -> None:
    parts = (
        Point(value=1, suffix="_bucket", labels=(("le", "1"),)),
        Point(value=3, suffix="_bucket", labels=(("le", "+Inf"),)),
        Point(value=3, suffix="_count"),
        Point(value=0.5, suffix="_sum"),
    )
    (joined,) = merged([family("a", *parts), family("a", *parts)])
    assert [point.value for point in joined.points] == [2, 6, 6, 1.0]
