"""Headers that the log adds to records: they mean something in the batch that they are in only."""

from __future__ import annotations

from dataclasses import replace

from frazil.log import Record

PREFIX = "frazil."


def without_own_headers(record: Record) -> Record:
    """Return a record without the headers that a log has added to it."""
    if not any(name.startswith(PREFIX) for name, _ in record.headers):
        return record
    kept = tuple(header for header in record.headers if not header[0].startswith(PREFIX))
    return replace(record, headers=kept)
