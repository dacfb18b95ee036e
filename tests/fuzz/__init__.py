"""Fuzzers of the OTLP readers and writers, compared with Google's protobuf.

__main__.py   the command: a kind, a number of bodies, a seed; prints a JSON line last
wire.py       the scanner of OTLP protobuf
json.py       the reader of OTLP/JSON
decode.py     the decoder of requests into Arrow rows
encode.py     the encoder of Arrow rows into requests
corpus.py     valid protobuf bodies that contain every field
mutate.py     mutations of them

A kind is a module with `run(count, seed) -> dict`: counts, which are added up over the parts of a
run, and `disagreements`, which must be empty.
"""
