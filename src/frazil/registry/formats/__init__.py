"""registry/formats: the languages of schemas: texts, and what can read what.

parsed.py     ParsedSchema: what every language gives
json_text.py  JSON of schemas: parsed within limits
avro/         Avro
protobuf/     Protocol Buffers
json_schema/  JSON Schema
parse.py      parse: a text of any of them
"""
