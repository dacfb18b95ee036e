"""Tests of Kafka clients that others wrote, against Apache Kafka and a node in the same run.

    python -m tests.live.kafka_port.judges                  all judges
    python -m tests.live.kafka_port.judges librdkafka       one of them
    python -m tests.live.kafka_port.judges librdkafka --tests 0018 0102

    librdkafka.py   the test programs of librdkafka, whose source is in the crate rdkafka-sys
    franz_go.py     the tests of franz-go's package kgo
    kafka_tools.py  Kafka's VerifiableProducer, VerifiableConsumer and TransactionalMessageCopier
    exceptions.py   which tests may fail here, and why
    servers.py      both brokers, with the same settings
    outcomes.py     how a test ended, and the comparison
    build.py        sources from package registries, built once

What passes on Apache Kafka must pass here, or be named in `exceptions.py`. Nothing of theirs is
part of this repository: it is fetched and built in `.cache/judges`, which may be removed. Needs
cargo, Go, a C and a C++ compiler, make, Java, and the headers of OpenSSL and zlib.
"""
