"""Errors of Parquet about a damaged file, as ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from frazil.errors import Corrupt


@contextmanager
def parquet_damage(path: str) -> Iterator[None]:
    """Turn Parquet's errors about a damaged file into `Corrupt`."""
    try:
        yield
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, OSError) and "checksum" not in str(error):
            raise  # of the disk or the network
        raise Corrupt(
            path=path,
            position=0,
            expected="a Parquet file",
            found=str(error),
            hint="The file is not changed. Check the health of the disk",
        ) from error
