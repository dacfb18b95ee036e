"""A short run of loads into `logs` amid kill -9; `make torture KIND=log_files` kills more."""

from __future__ import annotations

from tests.torture.load import log_files


def test_every_line_is_in_the_log_once() -> None:
    report = log_files.run(2, 1)
    assert report.is_valid, report.as_json()
