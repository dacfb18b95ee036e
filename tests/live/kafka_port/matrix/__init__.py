"""Which Kafka client does what with a node: run, and written into docs/kafka.md.

python -m tests.live.kafka_port.matrix           run all, print the table and write it
python -m tests.live.kafka_port.matrix kcat      only some, and print

table.py         columns, and the table in the docs
clients.py       the clients, and what is run for each column
librdkafka.py    what confluent-kafka does
"""
