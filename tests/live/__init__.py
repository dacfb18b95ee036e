"""Tests of real processes with real clients. Slow.

test_node.py        a node starts, stops, and explains why it cannot start
test_other_systems.py  a node without the calls that only Linux has
test_lock.py        one process per data folder
test_statements.py  definitions survive kill -9
test_fatal.py       a failing disk ends the process
test_full_disk.py   a full disk refuses appends and recovers
test_open.py        `frazil.open` on the data folder of a node
test_api_schema.py  the HTTP API behaves as its OpenAPI description says
test_lake.py        a node's Iceberg tables, read by several engines
test_stores.py      files of every kind of store, loaded as other libraries read them
otlp/               OpenTelemetry SDKs, and attacks on both OTLP ports
spark/              Spark streams and the examples of docs/spark.md
kafka/              a Kafka broker as the source of tables; librdkafka and our batches
rest_catalog/       tables behind an Iceberg REST catalog that fails
s3/                 tables on S3, as docs/lake-tables.md says
azure/, gcs/        servers of Azure Blob Storage and Google Cloud Storage
server_process.py   a server of a test as a process
locked_jars.py      jars that only tests need, checked against a lock file
"""
