"""log: the durable log, Frazil's only write-ahead log.

    append ──> writer ──> partition ──> segment        one group, one fdatasync, many responses
                              │ view
                              └──> reader ──> subscribers        only durable batches

    log.py          Log: opens a data folder; topics, appends, readers, maintenance
    topic.py        Topic: names, ids, settings and folders of topics
    topics.py       TopicList: the open ones; create, change, delete
    topic_changes.py  TopicChanges: tells other processes of that
    append.py       Append, AppendResult: what a producer submits, and the response
    writer.py       Writer: one thread, group commit
    partition.py    Partition: stage, write, sync, publish; roll, trim
    staging.py      StagedBatch: accepted and not written yet
    removed_segments.py  RemovedSegments: files that outlive their segment
    copied_sources.py  CopiedSources: how far sources were copied, of all partitions
    partition_sources.py  PartitionSources: how far sources were copied, in memory and on disk
    partition_transactions.py  PartitionTransactions: open and aborted ones, in memory and on disk
    segment.py      LogSegment: one file, a header and frames
    index.py        SparseIndex: positions of offsets and times in a segment
    view.py         PartitionView: what readers see, replaced as a whole
    watermarks.py   WatermarkFile: start offset and durable watermark, stored beside the log
    checkpoint.py   partition.ckpt, index and digest files
    recovery.py     opening after a crash: what is kept, what is cut, when to stop
    readable.py     ReadablePartition: what readers need, in the owner's process or in another
    reader.py       Reader: a cursor over durable batches
    readable_log.py ReadableLog: the reading half of a log
    progress.py     Progress: watermark and gaps of one subscriber in one partition
    subscribers.py  Subscriber, Claim: ack, nack, defer, dead letters
    retention.py    Retention: which segments may be removed, and their removal
    compaction.py   keep the latest record per key

    format/         Kafka record batches
    produce/        batches from Kafka clients
    dedup/          duplicate detection
    transactions/   open and aborted transactions
    repair/         damaged segments
    external/       reading the log from another process

On disk, below the data folder:

    frazil.lock                                          held by the owner
    log/<topic>/topic.ckpt                               id and settings
    log/<topic>/<partition>/00000000000000000000.log     a segment, named by its base offset
                           /00000000000000000000.index   sparse index (sealed segments)
                           /00000000000000000000.digests request digests (sealed segments)
                           /partition.ckpt               producer state
                           /transactions.ckpt            open transactions, once there was one
                           /sources.ckpt                 positions of sources, once there was one
                           /aborted                      aborted transactions, once there was one
                           /marks                        start offset, durable watermark
                           /<file>.damaged               bytes set aside by a repair
    log/subscribers/<name>.progress                      watermark and gaps
    log/.changes                                         a number; grows when a topic changes
    log/.deleted-<id>/                                   a deleted topic, until its files are gone

The writer thread owns every partition. All other threads see immutable views, which it replaces
after each group commit.
"""

from frazil.log.append import Append, AppendResult, append_of_records
from frazil.log.copied_sources import CopiedSource, SourceDirectory
from frazil.log.dedup.digests import DIGEST_BYTES
from frazil.log.dedup.source_positions import SourcePosition, SourceStep, step_in
from frazil.log.external.append_channel import AppendChannel, serve_appends
from frazil.log.external.commit_signal import CommitSignal, CommitWaiter
from frazil.log.external.log_copy import CopiedPartition, LogCopy
from frazil.log.external.observed_log import ObservedLog
from frazil.log.external.observer import PartitionObserver, partition_count
from frazil.log.external.owner import LogOwner, serve_observer
from frazil.log.external.ranges import ByteRange, SegmentRange, end_within, plan_ranges, read_range
from frazil.log.format.batch import (
    BatchHeader,
    check_batch,
    encode_batch,
    is_compressed,
    parse_header,
    read_records,
)
from frazil.log.format.compression import Compression
from frazil.log.format.record import Record
from frazil.log.log import LOCK_NAME, Log, LogMaintenance
from frazil.log.partition import Partition
from frazil.log.readable import ReadablePartition, ReadableTopic
from frazil.log.readable_log import ProgressKeeper, ReadableLog
from frazil.log.reader import AtTime, Isolation, Reader, Start, record_at_time
from frazil.log.repair.repair import RepairReport, repair_partition
from frazil.log.segment import StoredBatch
from frazil.log.staging import LEADER_EPOCH
from frazil.log.subscribers import Claim, Subscriber, SubscriberConfig, load_progress
from frazil.log.topic import Topic, check_name, topic_names
from frazil.log.topics import DEAD_LETTERS
from frazil.log.transactions.aborted import AbortedTransaction
from frazil.log.transactions.markers import Marker, append_of_marker, marker_of
from frazil.log.view import PartitionView
from frazil.log.writer import EXIT_CODE, Writer, exit_process

__all__ = [
    "DEAD_LETTERS",
    "DIGEST_BYTES",
    "EXIT_CODE",
    "LEADER_EPOCH",
    "LOCK_NAME",
    "AbortedTransaction",
    "Append",
    "AppendChannel",
    "AppendResult",
    "AtTime",
    "BatchHeader",
    "ByteRange",
    "Claim",
    "CommitSignal",
    "CommitWaiter",
    "Compression",
    "CopiedPartition",
    "CopiedSource",
    "Isolation",
    "Log",
    "LogCopy",
    "LogMaintenance",
    "LogOwner",
    "Marker",
    "ObservedLog",
    "Partition",
    "PartitionObserver",
    "PartitionView",
    "ProgressKeeper",
    "ReadableLog",
    "ReadablePartition",
    "ReadableTopic",
    "Reader",
    "Record",
    "RepairReport",
    "SegmentRange",
    "SourceDirectory",
    "SourcePosition",
    "SourceStep",
    "Start",
    "StoredBatch",
    "Subscriber",
    "SubscriberConfig",
    "Topic",
    "Writer",
    "append_of_marker",
    "append_of_records",
    "check_batch",
    "check_name",
    "encode_batch",
    "end_within",
    "exit_process",
    "is_compressed",
    "load_progress",
    "marker_of",
    "parse_header",
    "partition_count",
    "plan_ranges",
    "read_range",
    "read_records",
    "record_at_time",
    "repair_partition",
    "serve_appends",
    "serve_observer",
    "step_in",
    "topic_names",
]
