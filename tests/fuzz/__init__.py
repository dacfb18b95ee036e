"""The fuzzer: bodies for all that reads and writes OTLP, judged against protobuf's own.

__main__.py   the command: a kind, a number of bodies, a seed; prints a JSON line last
wire.py       the scanner of OTLP's protobuf bytes
json.py       the reader of OTLP's JSON
decode.py     the decoders of requests into rows of Arrow
encode.py     the encoders of these rows into requests
corpus.py     protobuf bodies with every field in them
mutate.py     ways to bend them

A kind is a module with `run(count, seed) -> dict`: counts, which are added up over the parts of a
run, and `disagreements`, of which there must be none.
"""
