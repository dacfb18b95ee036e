"""lake/append: commits records of the log, or of Kafka, to the tables.

appender.py      Appender: rounds from a log to tables
log_source.py    RecordSource (protocol) and LogSource: our log as the source
kafka_source.py  KafkaSource: a Kafka cluster as the source
kafka_changes.py KafkaChanges: topics of Kafka that keyed tables are folded from
kafka_admin.py   KafkaAdmin: topics and offsets, for the driver
kafka_reader.py  KafkaCursor; KafkaRange: offsets of a partition, for a task
slice.py         Slice: the input of one task
dead_letters.py  dead letters of keyed tables
task.py          one task: reads, decodes and writes a slice
commit.py        commits files and offsets atomically
progress.py      LakeActivity: what the lake's thread is doing
"""
