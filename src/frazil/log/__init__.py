"""log: the durable truth. Ordered, replayable, the only write-ahead log there is.

    log.py          Log: opens a data folder; topics, appends, readers, maintenance
    config.py       LogConfig, TopicConfig
    topic.py        names, settings and folders of topics
    append.py       Append, Appended: what a producer asks for, and gets back
    batch.py        Kafka record batches: encoded, parsed, checked
    record.py       Record: one of the records in a batch
    compression.py  gzip, snappy, lz4, zstd, with a cap on what comes out
    writer.py       Writer: one thread, group commit
    partition.py    Partition: stage, write, sync, publish; roll, trim
    recovery.py     opening after a crash: what is kept, what is cut, when to stop
    segment.py      LogSegment: one file, a header and frames
    index.py        where in a segment an offset or a time begins
    marks.py        what was promised, kept outside the log
    view.py         View: what readers see, replaced whole
    reader.py       Reader: a cursor that sees only what is durable
    offline.py      Stretch: offsets, read by a process that has no log
    outside.py      Onlooker: what is durable, seen by a process that has no log
    producers.py    never twice, for producers that number their batches
    digests.py      never twice, for senders that number nothing
    progress.py     Progress: watermark and gaps of one subscriber in one partition
    subscribers.py  Subscriber, Claim: ack, nack, defer, dead letters
    retention.py    what may go, and Retention, which has it go
    compaction.py   latest record per key
    repair.py       giving up damaged bytes, keeping every whole batch
    salvage.py      the whole batches in damaged bytes

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

from frazil.log.append import Append, Appended, append_of_batch, append_of_records
from frazil.log.batch import (
    BatchHeader,
    check_batch,
    encode_batch,
    parse_header,
    read_records,
    validate_produced,
)
from frazil.log.compression import Compression
from frazil.log.config import LogConfig, TopicConfig
from frazil.log.digests import DIGEST_BYTES
from frazil.log.log import LOCK_NAME, Log, Maintained
from frazil.log.offline import Extent, Stretch, plan_stretches, reach, read_stretch
from frazil.log.outside import Onlooker, partition_count
from frazil.log.partition import Partition
from frazil.log.reader import AtTime, Reader, Start
from frazil.log.record import Record
from frazil.log.repair import Repaired, repair_partition
from frazil.log.segment import StoredBatch
from frazil.log.subscribers import DEAD_LETTERS, Claim, Subscriber, SubscriberConfig
from frazil.log.topic import Topic, check_name, topic_names
from frazil.log.view import View
from frazil.log.writer import EXIT_CODE, exit_process

__all__ = [
    "DEAD_LETTERS",
    "DIGEST_BYTES",
    "EXIT_CODE",
    "LOCK_NAME",
    "Append",
    "Appended",
    "AtTime",
    "BatchHeader",
    "Claim",
    "Compression",
    "Extent",
    "Log",
    "LogConfig",
    "Maintained",
    "Onlooker",
    "Partition",
    "Reader",
    "Record",
    "Repaired",
    "Start",
    "StoredBatch",
    "Stretch",
    "Subscriber",
    "SubscriberConfig",
    "Topic",
    "TopicConfig",
    "View",
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
