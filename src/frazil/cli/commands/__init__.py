"""cli/commands: one file per verb.

appender.py            fill tables from a Kafka
completion.py          what a shell can complete
completion_scripts.py  scripts that do so
config.py              what is set, and where
demo.py                send the telemetry of a small shop
doctor.py              look at all that a node needs
export.py              write telemetry as lines of OTLP/JSON
flush.py               bring what is durable into tables
import_.py             import: send such lines to a node
init.py                write a commented frazil.toml
maintain.py            join small files of the tables, and tidy up
pyspark.py             PySpark over a data folder
repair.py              damage in it, set aside
sql.py                 ask in SQL
status.py              how a node does
subscribers.py         who reads it
tail.py                records as they come in
topics.py              what the log has
trace.py               a trace, or the newest ones
up.py                  run a node
warm.py                compile and fetch ahead
"""
