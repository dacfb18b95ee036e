"""CleanFiles: data files that were read and have no rows to remove, so that they are read once."""

from __future__ import annotations

from frazil.lake.maintain.row_condition import RowCondition
from frazil.lake.scan.data_file import TableFile

FILES_MAX = 100_000
"""Files remembered; above it all are forgotten, and read once more."""


class CleanFiles:
    """Files by location. A data file never changes; what is removed from it changes with time."""

    def __init__(self) -> None:
        self._keys: dict[str, tuple[object, ...]] = {}

    def has(self, file: TableFile, condition: RowCondition) -> bool:
        return self._keys.get(file.location) == _key(file, condition)

    def add(self, file: TableFile, condition: RowCondition) -> None:
        if len(self._keys) >= FILES_MAX:
            self._keys.clear()
        self._keys[file.location] = _key(file, condition)


def _key(file: TableFile, condition: RowCondition) -> tuple[object, ...]:
    return condition.key_for(file.time_min_us, file.time_max_us)
