"""Checks of the final rows against the ledger."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from random import Random

import pyarrow as pa
from pyiceberg.table import Table

from frazil.lake.catalog.catalog import open_catalog
from frazil.model import Signal
from frazil.settings import LakeConfig
from tests.torture.checker import Verdict
from tests.torture.node.asking import TABLES
from tests.torture.node.load import ID, ROWS, SERVICE, Ledger, parts_of

SNAPSHOTS_READ = 12
"""Older snapshots read per table."""
COLUMNS = ("service_name", "attributes", "_log_partition", "_offset", "_row")

RowPosition = tuple[int, int, int]
"""Partition, offset and row."""
Rows = list[tuple[RowPosition, str | None]]
"""The rows of a table in log order, each with its id if it is a numbered one."""
SenderRows = dict[int, list[tuple[RowPosition, int]]]
"""Request number -> its rows, as (position, row number)."""
Ask = Callable[[str], pa.Table]


def rows_by_sql(ask: Ask, signal: Signal) -> Rows:
    """Return the rows that SQL returns from both tiers."""
    text = (
        f"SELECT _log_partition, _offset, _row, CASE WHEN service_name = '{SERVICE}' "
        f"THEN attributes['{ID}'] END AS id FROM {TABLES[signal]}"
    )
    return _sorted_rows(ask(text).to_pydict().values())


def rows_by_pyiceberg(table: Table, snapshot_id: int | None = None) -> Rows:
    """Return the rows that PyIceberg reads from the table."""
    found = table.scan(selected_fields=COLUMNS, snapshot_id=snapshot_id).to_arrow()
    services = found["service_name"].to_pylist()
    maps = found["attributes"].to_pylist()
    ids = [
        dict(pairs).get(ID) if service == SERVICE else None
        for service, pairs in zip(services, maps, strict=True)
    ]
    positions = (found[name].to_pylist() for name in COLUMNS[2:])
    return _sorted_rows([*positions, ids])


def _sorted_rows(columns: Iterable[list[object]]) -> Rows:
    rows = zip(*columns, strict=True)
    return sorted(((p, o, r), i) for p, o, r, i in rows)


def judge(ledger: Ledger, signal: Signal, rows: Rows) -> Verdict:
    """Check that acknowledged records occur once, others at most once, in order."""
    verdict = Verdict()
    where = TABLES[signal]
    for position, count in Counter(position for position, _ in rows).items():
        if count > 1:
            verdict.add("duplicate", f"{where}: {position} occurs {count} times")
    numbered = [(position, identity) for position, identity in rows if identity is not None]
    demo_count = len(rows) - len(numbered)
    if demo_count < ledger.demo[signal]:
        verdict.add("lost", f"{where}: {ledger.demo[signal] - demo_count} rows of the demo")
    if demo_count > ledger.demo[signal]:
        verdict.add("duplicate", f"{where}: {demo_count - ledger.demo[signal]} rows of the demo")
    requests: dict[str, SenderRows] = defaultdict(lambda: defaultdict(list))
    for position, identity in numbered:
        sender, number, row = parts_of(identity)
        requests[sender][number].append((position, row))
    for sender, sent in ledger.senders.items():
        if sent.signal is signal:
            _judge_sender(verdict, sender, requests.pop(sender, {}), sent.acknowledged, sent.maybe)
    for sender in requests:
        verdict.add("foreign", f"{where}: {sender}")
    return verdict


def _judge_sender(
    verdict: Verdict,
    sender: str,
    requests: SenderRows,
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
        offsets = {position[:2] for position, _ in found}
        if len(rows) > ROWS:
            verdict.add("duplicate", f"{sender}/{number} at {sorted(offsets)}")
        elif rows != list(range(ROWS)) or len(offsets) != 1:
            verdict.add("hole", f"{sender}/{number} has rows {rows} at {sorted(offsets)}")
        elif (offset := offsets.pop()) < before:
            verdict.add("order", f"{sender}/{number} at {offset}, the previous one at {before}")
        else:
            before = offset


def judge_tables(ledger: Ledger, data: Path, config: LakeConfig, chance: Random) -> Verdict:
    """Check with PyIceberg that the last snapshot is complete and the others are its prefixes."""
    verdict = Verdict()
    with closing(open_catalog(config, data)) as catalog:
        for signal, name in TABLES.items():
            table = catalog.load_table((config.namespace, name))
            rows = rows_by_pyiceberg(table)
            verdict.merge(judge(ledger, signal, rows), "PyIceberg:")
            ids = [snapshot.snapshot_id for snapshot in table.metadata.snapshots]
            for snapshot_id in chance.sample(ids, min(SNAPSHOTS_READ, len(ids))):
                part = rows_by_pyiceberg(table, snapshot_id)
                if part != rows[: len(part)]:
                    verdict.add("hole", f"{name}: snapshot {snapshot_id} is no prefix of the last")
    return verdict
