"""Fuzzers: OTLP readers and writers, compared with Google's protobuf; SQL, against query workers;
decoders of the Kafka port.

__main__.py   the command: a kind, a number of bodies or texts, a seed; prints a JSON line last
wire.py       the scanner of OTLP protobuf
json.py       the reader of OTLP/JSON
decode.py     the decoder of requests into Arrow rows
encode.py     the encoder of Arrow rows into requests
corpus.py     valid protobuf bodies that contain every field
mutate.py     mutations of them
kafka_wire.py mutated messages of Kafka
kafka.py      malformed and hostile requests against an open Kafka port
sql.py        SQL texts against real query workers
statements.py texts against the door of queries and the door of statements
sql_texts.py  queries of docs and tests, grammar-made ones, and mutations of them

A kind is a module with `run(count, seed) -> dict`: counts, which are added up over the parts of a
run, and `disagreements`, which must be empty.
"""
