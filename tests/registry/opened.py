"""A registry over a log in this process."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from frazil.disk import RealDisk
from frazil.log import Log
from frazil.model import SystemClock
from frazil.registry import (
    Registration,
    Registry,
    SchemaContent,
    SchemaReference,
    SchemaType,
    SchemaVersion,
)


@contextmanager
def opened_registry(folder: Path) -> Iterator[Registry]:
    disk, clock = RealDisk(folder), SystemClock()
    with Log.open(disk, clock=clock, rand=random.SystemRandom()) as log:
        registry = Registry.open(disk, log, clock=clock)
        try:
            yield registry
        finally:
            registry.close()


def given(
    text: str,
    kind: SchemaType = SchemaType.AVRO,
    references: tuple[SchemaReference, ...] = (),
    *,
    schema_id: int | None = None,
    version: int | None = None,
    normalizes: bool = False,
) -> Registration:
    content = SchemaContent(text=text, schema_type=kind, references=references)
    return Registration(
        content=content, schema_id=schema_id, version=version, normalizes=normalizes
    )


def register(registry: Registry, subject: str, text: str, **more: object) -> SchemaVersion:
    return registry.register(subject, given(text, **more))  # type: ignore[arg-type]


def record(name: str, *fields: str) -> str:
    """An Avro record, whose fields are optional integers."""
    listed = ",".join(f'{{"name":"{each}","type":"int","default":0}}' for each in fields)
    return f'{{"type":"record","name":"{name}","fields":[{listed}]}}'
