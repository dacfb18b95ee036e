"""cli/commands: one file per verb.

up.py           run a node
demo.py         send the telemetry of a sample shop
doctor.py       check everything a node needs
status.py       show node status
sql.py          query with SQL
apply.py        make a node have the definitions of a folder
upload.py       store a file in a stage
connect.py      list sources and sinks, pause, resume or restart one
tail.py         print records as they arrive
trace.py        show a trace, or list the newest
services.py     show request rate, error rate and latency of services
tables.py       list keyed tables, write, look up and follow their rows
topics.py       list, create, alter, delete and describe topics
groups.py       list, describe, reset and delete consumer groups
produce.py      send lines as records to a topic
consume.py      print the records of a topic
users.py        list, add and remove users of the Kafka port
subscribers.py  list the subscribers of the log
repair.py       find and set aside damaged parts of the log
flush.py        commit everything durable to the tables
maintain.py     compact tables and expire snapshots
retention.py    show retention rules, remove expired rows
erase.py        erase rows from every place
backup.py       back up a data folder, also of a running node
restore.py      make a data folder of a backup
export.py       write telemetry as OTLP/JSON lines
import_.py      import: send OTLP/JSON lines to a node
mcp.py          serve tools for agents on standard input and output
appender.py     fill tables from Kafka
pyspark.py      run PySpark on a data folder
grafana.py      write data sources and dashboards for Grafana
init.py         write a commented frazil.toml
config.py       show effective settings
warm.py         compile and download ahead
completion.py   print a shell completion script
"""
