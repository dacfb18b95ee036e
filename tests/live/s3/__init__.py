"""Tests with a real S3 server.

jars.py       the jars of the server and of Spark's access to S3, listed in jars.lock
server.py     the server as a separate process
test_docs.py  docs/lake-tables.md "On S3", followed literally
"""
