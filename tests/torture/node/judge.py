"""What a reader shows in the end, against what was promised."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from random import Random

import pyarrow as pa
from pyiceberg.table import Table

from frazil.lake.catalog.catalog import open_catalog
from frazil.lake.config import LakeConfig
from frazil.model import Signal
from tests.torture.checker import Verdict
from tests.torture.node.asking import TABLES
from tests.torture.node.load import ID, ROWS, SERVICE, Ledger, parts_of

SNAPSHOTS_READ = 12
"""Of each table, beside the last one."""
COLUMNS = ("service_name", "attributes", "_log_partition", "_offset", "_row")

Place = tuple[int, int, int]
"""Partition, offset and row."""
Shown = list[tuple[Place, str | None]]
"""Every row of a table: where it is, and its id if it is a numbered one."""
Ask = Callable[[str], pa.Table]


def shown_by_sql(ask: Ask, signal: Signal) -> Shown:
    """What SQL shows, over both tiers."""
    text = (
        f"SELECT _log_partition, _offset, _row, CASE WHEN service_name = '{SERVICE}' "
        f"THEN attributes['{ID}'] END AS id FROM {TABLES[signal]}"
    )
    return _shown(ask(text).to_pydict().values())


def shown_by_pyiceberg(table: Table, snapshot_id: int | None = None) -> Shown:
    """What somebody else reads from the table."""
    found = table.scan(selected_fields=COLUMNS, snapshot_id=snapshot_id).to_arrow()
    services = found["service_name"].to_pylist()
    maps = found["attributes"].to_pylist()
    ids = [
        dict(pairs).get(ID) if service == SERVICE else None
        for service, pairs in zip(services, maps, strict=True)
    ]
    places = (found[name].to_pylist() for name in COLUMNS[2:])
    return _shown([*places, ids])


def _shown(columns: Iterable[list[object]]) -> Shown:
    rows = zip(*columns, strict=True)
    return sorted(((p, o, r), i) for p, o, r, i in rows)


def judge(ledger: Ledger, signal: Signal, shown: Shown) -> Verdict:
    """Every acknowledged record once, every other one at most once, in order, and no others."""
    verdict = Verdict()
    where = TABLES[signal]
    for place, count in Counter(place for place, _ in shown).items():
        if count > 1:
            verdict.add("duplicate", f"{where}: the place {place} is there {count} times")
    numbered = [(place, identity) for place, identity in shown if identity is not None]
    demo_count = len(shown) - len(numbered)
    if demo_count < ledger.demo[signal]:
        verdict.add("lost", f"{where}: {ledger.demo[signal] - demo_count} rows of the demo")
    if demo_count > ledger.demo[signal]:
        verdict.add("duplicate", f"{where}: {demo_count - ledger.demo[signal]} rows of the demo")
    requests: dict[str, dict[int, list[tuple[Place, int]]]] = defaultdict(lambda: defaultdict(list))
    for place, identity in numbered:
        sender, number, row = parts_of(identity)
        requests[sender][number].append((place, row))
    for sender, sent in ledger.senders.items():
        if sent.signal is signal:
            _judge_sender(verdict, sender, requests.pop(sender, {}), sent.acknowledged, sent.maybe)
    for sender in requests:
        verdict.add("foreign", f"{where}: {sender}")
    return verdict


def _judge_sender(
    verdict: Verdict,
    sender: str,
    requests: dict[int, list[tuple[Place, int]]],
    acknowledged: set[int],
    maybe: set[int],
) -> None:
    for number in sorted(acknowledged - requests.keys()):
        verdict.add("lost", f"{sender}/{number}")
    for number in sorted(requests.keys() - acknowledged - maybe):
        verdict.add("foreign", f"{sender}/{number}")
    before = (-1, -1)
    for number, found in sorted(requests.items()):
        rows = [row for _, row in found]
        offsets = {place[:2] for place, _ in found}
        if len(rows) > ROWS:
            verdict.add("duplicate", f"{sender}/{number} is at {sorted(offsets)}")
        elif rows != list(range(ROWS)) or len(offsets) != 1:
            verdict.add("hole", f"{sender}/{number} has the rows {rows} at {sorted(offsets)}")
        elif (offset := offsets.pop()) < before:
            verdict.add("order", f"{sender}/{number} is at {offset}, the one before at {before}")
        else:
            before = offset


def judge_tables(ledger: Ledger, data: Path, config: LakeConfig, chance: Random) -> Verdict:
    """The tables as PyIceberg reads them: the last snapshot is whole, the others are its begin."""
    verdict = Verdict()
    with closing(open_catalog(config, data)) as catalog:
        for signal, name in TABLES.items():
            table = catalog.load_table((config.namespace, name))
            shown = shown_by_pyiceberg(table)
            verdict.merge(judge(ledger, signal, shown), "PyIceberg:")
            ids = [snapshot.snapshot_id for snapshot in table.metadata.snapshots]
            for snapshot_id in chance.sample(ids, min(SNAPSHOTS_READ, len(ids))):
                part = shown_by_pyiceberg(table, snapshot_id)
                if part != shown[: len(part)]:
                    verdict.add("hole", f"{name}: snapshot {snapshot_id} is no begin of the last")
    return verdict
