"""The examples in docs/formats decode as stated."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from frazil.backup import BackupManifest, read_manifest
from frazil.disk import read_checkpoint
from frazil.kafka.groups.records import (
    CommittedOffset,
    read_group,
    read_offset,
    read_offset_key,
)
from frazil.kafka.transactions.metadata import TransactionMetadata, TransactionState
from frazil.kafka.transactions.records import read_transaction, transaction_record
from frazil.lake.read.reader_progress import ReaderProgress
from frazil.log.checkpoint import SOURCES, STATE, STATE_VERSION
from frazil.log.dedup.digests import decode_digests
from frazil.log.dedup.producers import PastBatch, Producer, Producers
from frazil.log.dedup.source_positions import SourcePosition, SourcePositions
from frazil.log.index import NO_TIME, SegmentInfo, decode_index
from frazil.log.progress import Progress
from frazil.log.segment import (
    HEADER_BYTES,
    SegmentHeader,
    decode_segment_header,
    identity_of,
    walk_batches,
)
from frazil.log.transactions.aborted import AbortedTransaction
from frazil.log.transactions.aborted_file import read_aborted
from frazil.log.transactions.state import decode_state
from frazil.log.watermarks import NAME, SLOT_BYTES, StoredWatermarks, WatermarkFile
from frazil.model import OffsetRange, TopicPartition
from tests.sim.disk import SimDisk

PAGES = Path(__file__).parent.parent / "docs" / "formats"


def example(page: str, name: str = "") -> bytes:
    """Return the bytes of a fenced block of a page."""
    text = (PAGES / f"{page}.md").read_text()
    blocks = dict(re.findall(r"```hex ?(\w*)\n(.*?)```", text, re.DOTALL))
    return bytes.fromhex(blocks[name])


def disk_with(path: str, data: bytes) -> SimDisk:
    disk = SimDisk()
    disk.open(path, "create").append([data])
    return disk


def body(kind: str, version: int = 1) -> bytes:
    disk = disk_with("example", example("checkpoint", kind))
    found = read_checkpoint(disk, "example", kind.encode(), version, "")
    assert found is not None
    return found


def test_aborted_transactions() -> None:
    disk = SimDisk()
    disk.make_directory("p")
    disk.open("p/aborted", "create").append([example("transactions")])
    assert read_aborted(disk, "p", 5).overlapping(0, 2000) == [
        AbortedTransaction(77, 1042, 1050),
        AbortedTransaction(78, 1045, 1051),
    ]
    assert decode_state(body("TXNS")) == (1070, 5, {79: 1060})


def test_sources() -> None:
    data = body("SRCS")
    assert SOURCES.unpack_from(data) == (2001,)
    assert dict(SourcePositions.decode(data[SOURCES.size :]).items()) == {
        "pg.shop": SourcePosition(3, bytes.fromhex("0000000001a2b3c8"), 1043, 1045),
        "files": SourcePosition(1, None, 900, 901),
    }


def test_consumer_offsets() -> None:
    page = "consumer-offsets"
    assert read_offset_key(example(page, "offset_key")) == (
        "billing",
        TopicPartition("orders", 2),
    )
    committed = read_offset(example(page, "offset_value"), 5)
    assert committed == CommittedOffset(1042, 0, "note", 1_700_000_000_000, log_offset=5)
    group = read_group(example(page, "group_key"), example(page, "group_value"))
    (member,) = group.members.values()
    assert (group.group_id, group.generation, group.state) == ("billing", 7, "Stable")
    assert (member.member_id, member.session_timeout_ms) == ("app-1", 45_000)
    assert (member.protocols, member.assignment) == ((("range", b"\0\1"),), b"\0\2")


def test_transaction_state() -> None:
    page = "transaction-state"
    found = read_transaction(example(page, "key"), example(page, "value"))
    assert found == TransactionMetadata(
        transactional_id="billing",
        producer_id=77,
        epoch=4,
        timeout_ms=60_000,
        state=TransactionState.PREPARE_COMMIT,
        partitions=frozenset(
            TopicPartition(*each)
            for each in (("orders", 0), ("orders", 2), ("__consumer_offsets", 0))
        ),
        start_ms=1_700_000_000_000,
        update_ms=1_700_000_000_500,
        client_version=2,
    )
    assert transaction_record(found) == (example(page, "key"), example(page, "value"))


def test_segment() -> None:
    data = example("log-segment")
    header = decode_segment_header(data, "example")
    assert header == SegmentHeader(
        identity=identity_of("otlp_logs", 0),
        salt=bytes.fromhex("0123456789abcdef"),
        base_offset=1042,
        created_ms=1_700_000_000_000,
    )
    assert header.encode() == data[:HEADER_BYTES]
    file = disk_with("example", data).open("example")
    (batch,) = walk_batches(file, header, HEADER_BYTES, len(data), 1042)
    (record,) = batch.records()
    assert (record.offset, record.timestamp_ms, record.value) == (
        1042,
        1_700_000_000_123,
        b"hello",
    )


def test_watermark_file() -> None:
    slots = example("marks")
    data = b"".join(slots[i : i + 32].ljust(SLOT_BYTES, b"\0") for i in range(0, 128, 32))
    _, promise = WatermarkFile.open(disk_with(NAME, data), "")
    assert promise == StoredWatermarks(
        is_known=True, start_offset=1042, dropped_count=3, durable_watermark=2001
    )


def test_partition_state() -> None:
    state = body("PART", STATE_VERSION)
    assert STATE.unpack_from(state) == (1042, 2001)
    producers = Producers.decode(state[STATE.size :], 0)
    assert producers._known[77].epoch == 2
    assert producers._known[77].past == (PastBatch(10, 11, 1040, 1042),)
    assert producers._known[78] == Producer(5, 0, (), 1999)


def test_index() -> None:
    salt, facts, index = decode_index(body("INDX"), 1)
    assert salt.hex() == "0123456789abcdef"
    assert facts == SegmentInfo(1042, 1044, 296, 1_700_000_000_456, 1_700_000_060_000, 1)
    assert list(index.offsets) == [1042, 1043]
    assert list(index.positions) == [64, 180]
    assert list(index.times_before) == [NO_TIME, 1_700_000_000_123]


def test_digests() -> None:
    assert decode_digests(body("DGST")) == [(bytes(range(16)), 1043)]


def test_progress() -> None:
    saved = msgspec.msgpack.decode(body("SUBS"))
    assert saved["topic"] == "otlp_logs"
    (progress,) = msgspec.convert(saved["partitions"], list[Progress])
    assert progress == Progress(
        watermark=1042, done=[OffsetRange(1045, 1050)], tries={1042: 2}, dropped_count=3
    )


def test_backup() -> None:
    (text,) = re.findall(r"```json\n(.*?)```", (PAGES / "backup.md").read_text(), re.DOTALL)
    manifest = read_manifest(disk_with("backup.json", text.encode()), "example")
    (partition,), (table,) = manifest.partitions, manifest.tables
    assert (partition.start_offset, partition.end_offset) == (1042, 2001)
    assert table.next_offsets == {"otlp_logs": {"0": 1990}} and table.metadata in manifest.files
    assert manifest.size_bytes == 2 + 11709
    shown = re.findall(r"^\| `(\w+)` \|", (PAGES / "backup.md").read_text(), re.MULTILINE)
    assert tuple(shown) == BackupManifest.__struct_fields__


def test_reader_progress() -> None:
    assert msgspec.msgpack.decode(body("READ"), type=ReaderProgress) == ReaderProgress(
        table="logs", offsets={0: 1042, 1: 7}, dropped_count=3
    )
