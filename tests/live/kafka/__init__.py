"""Tests with Apache Kafka and its clients.

jars.py             the jars of a broker, listed in jars.lock
broker.py           a broker as a separate process
test_source.py      ranges of committed records
test_lake.py        `frazil appender` from Kafka into tables
keyed.py            random changes of keyed tables in topics, and their fold
test_keyed.py       `frazil appender` from Kafka into keyed tables
test_librdkafka.py  librdkafka and Frazil read each other's batches
"""
