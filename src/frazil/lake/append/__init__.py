"""lake/append: from the log, or Kafka, into the tables.

appender.py      Appender: rounds from a log to tables
commit.py        files and offsets in one step, or neither
kafka_admin.py   what the driver asks it
kafka_reader.py  what a task reads of it
kafka_source.py  or a Kafka
log_source.py    where rows come from: our log, by its files
progress.py      Doing: what is done to the tables now
slice.py         what one task takes
task.py          what one task does
"""
