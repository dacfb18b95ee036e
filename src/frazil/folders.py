"""Data folders, opened by a process that no node shares them with.

open_folder                    hot tier, lake and SQL: `frazil.open`
flush_folder, maintain_folder  log, lake and keyed tables only
open_lake                      the lake over a log; a node uses it, too
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from frazil.config import Config, load, reserve_bytes
from frazil.disk import DiskReserve, RealDisk
from frazil.embedded import FEED_CODEC, Closable, Embedded
from frazil.errors import Unavailable, Unknown
from frazil.keyed_lake import FreezeSource, seed_rows
from frazil.lake import Appended, Lake, Maintained, OnSpark
from frazil.log import Log, ReadableLog
from frazil.model import Clock, Rand, SystemClock, SystemRand
from frazil.settings import retention_rules
from frazil.tables import KeyedTables

logger = logging.getLogger(__name__)


def open_folder(
    path: str | os.PathLike[str],
    config: str | os.PathLike[str] | None,
    assignments: Iterable[str] = (),
) -> Embedded:
    """Open a data folder; all rows are visible on return. `assignments` override the config file,
    such as `query.rows_max=10`."""
    file = None if config is None else os.fspath(config)
    settings = load(file, {"data": os.fspath(path)}, assignments=assignments)
    _check_folder(Path(path))
    disk, clock = RealDisk(settings.data), SystemClock()
    log = Log.open(disk, settings.log, clock=clock, rand=SystemRand(), holder="frazil.open")
    with ExitStack() as stack:
        stack.callback(log.close)
        lake = open_lake(log, settings, clock=clock, rand=SystemRand(), auto_flush=False)
        owns: list[Closable] = [log] if lake is None else [log, lake]
        stack.pop_all()
        opened = Embedded.over(log, disk, settings, clock=clock, lake=lake, owns=owns)
        stack.callback(opened.close)
        opened.catch_up()
        stack.pop_all()
    return opened


def flush_folder(config: Config) -> list[Appended]:
    """Append all data of a folder to its tables. No other process may use the folder."""
    with _lake_of(config, "frazil flush") as lake:
        return lake.flush()


def maintain_folder(config: Config) -> list[Maintained]:
    """Maintain the tables of a folder. No other process may use the folder."""
    with _lake_of(config, "frazil maintain") as lake:
        return lake.maintain()


@contextmanager
def _lake_of(config: Config, holder: str) -> Iterator[Lake]:
    """Open only log, lake and keyed tables of a data folder."""
    _check_folder(Path(config.data))
    disk, clock, rand = RealDisk(config.data), SystemClock(), SystemRand()
    with (
        Log.open(disk, config.log, clock=clock, rand=rand, holder=holder) as log,
        Lake.open(
            log,
            Path(config.data),
            config.lake,
            clock=clock,
            rand=rand,
            auto_flush=False,
            rules=retention_rules(config.retention),
            promotions=config.promotions,
        ) as lake,
        closing(
            KeyedTables(
                disk, log, config.tables, clock=clock, frozen=seed_rows(lake), codec=FEED_CODEC
            )
        ) as tables,
    ):
        tables.start()
        lake.freeze_from(FreezeSource(tables, log))
        yield lake


def open_lake(
    log: ReadableLog,
    config: Config,
    *,
    clock: Clock,
    rand: Rand,
    auto_flush: bool,
    on_spark: OnSpark = lambda _, __: None,
) -> Lake | None:
    """Open the lake, or return None if it is disabled or not installed."""
    if not config.lake.enabled:
        return None
    try:
        return Lake.open(
            log,
            Path(config.data),
            config.lake,
            clock=clock,
            rand=rand,
            auto_flush=auto_flush,
            rules=retention_rules(config.retention),
            promotions=config.promotions,
            on_spark=on_spark,
            reserve=DiskReserve(RealDisk(config.data), reserve_bytes(config)),
        )
    except Unavailable as error:
        logger.warning("there is no lake", extra={"reason": str(error)})
        return None


def _check_folder(path: Path) -> None:
    if not (path / "log").is_dir():
        raise Unknown(
            f"{path} is not a data folder of Frazil: it has no log; create one with "
            "`frazil up --data …`"
        )
