"""log: the durable truth. Ordered, replayable, the only write-ahead log there is.

    append.py       Append, AppendResult: what a producer asks for, and gets back
    checkpoint.py   partition.ckpt, index and digest files
    compaction.py   latest record per key
    config.py       LogConfig, TopicConfig
    index.py        where in a segment an offset or a time begins
    log.py          Log: opens a data folder; topics, appends, readers, maintenance
    partition.py    Partition: stage, write, sync, publish; roll, trim
    progress.py     Progress: watermark and gaps of one subscriber in one partition
    reader.py       Reader: a cursor that sees only what is durable
    recovery.py     opening after a crash: what is kept, what is cut, when to stop
    retention.py    what may go, and Retention, which has it go
    segment.py      LogSegment: one file, a header and frames
    subscribers.py  Subscriber, Claim: ack, nack, defer, dead letters
    topic.py        names, settings and folders of topics
    view.py         PartitionView: what readers see, replaced whole
    watermarks.py   what was promised, kept outside the log
    writer.py       Writer: one thread, group commit

    dedup/          duplicate detection
    external/       reading the log from another process
    format/         record batches
    repair/         damaged segments

On disk, below the data folder:

    frazil.lock                                          one owner
    log/<topic>/topic.ckpt                               settings
    log/<topic>/<partition>/00000000000000000000.log     a segment, named by its base offset
                           /00000000000000000000.index   where offsets and times begin (sealed)
                           /00000000000000000000.digests request digests (sealed)
                           /partition.ckpt               producer state
                           /marks                        log start, durable watermark
                           /<file>.damaged               bytes a repair has set aside
    log/subscribers/<name>.progress                      watermark and gaps

The writer thread owns every partition. Readers, subscribers and everybody else see immutable
views that it replaces after each group commit.
"""

from frazil.log.append import Append, AppendResult, append_of_batch, append_of_records
from frazil.log.config import LogConfig, TopicConfig
from frazil.log.dedup.digests import DIGEST_BYTES
from frazil.log.external.observer import PartitionObserver, partition_count
from frazil.log.external.ranges import ByteRange, SegmentRange, plan_stretches, reach, read_stretch
from frazil.log.format.batch import (
    BatchHeader,
    check_batch,
    encode_batch,
    parse_header,
    read_records,
    validate_produced,
)
from frazil.log.format.compression import Compression
from frazil.log.format.record import Record
from frazil.log.log import LOCK_NAME, Log, LogMaintenance
from frazil.log.partition import Partition
from frazil.log.reader import AtTime, Reader, Start
from frazil.log.repair.repair import RepairReport, repair_partition
from frazil.log.segment import StoredBatch
from frazil.log.subscribers import DEAD_LETTERS, Claim, Subscriber, SubscriberConfig
from frazil.log.topic import Topic, check_name, topic_names
from frazil.log.view import PartitionView
from frazil.log.writer import EXIT_CODE, exit_process

__all__ = [
    "DEAD_LETTERS",
    "DIGEST_BYTES",
    "EXIT_CODE",
    "LOCK_NAME",
    "Append",
    "AppendResult",
    "AtTime",
    "BatchHeader",
    "ByteRange",
    "Claim",
    "Compression",
    "Log",
    "LogConfig",
    "LogMaintenance",
    "Partition",
    "PartitionObserver",
    "PartitionView",
    "Reader",
    "Record",
    "RepairReport",
    "SegmentRange",
    "Start",
    "StoredBatch",
    "Subscriber",
    "SubscriberConfig",
    "Topic",
    "TopicConfig",
    "append_of_batch",
    "append_of_records",
    "check_batch",
    "check_name",
    "encode_batch",
    "exit_process",
    "parse_header",
    "partition_count",
    "plan_stretches",
    "reach",
    "read_records",
    "read_stretch",
    "repair_partition",
    "topic_names",
    "validate_produced",
]
