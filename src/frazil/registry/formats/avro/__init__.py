"""registry/formats/avro: Avro 1.12.

types.py          AvroType: a parsed type
parser.py         parse_avro: JSON to types, checked as Avro's own parser does
defaults.py       does a default value fit a type?
printer.py        types to JSON
compatibility.py  what a reader's schema can read: Avro's schema resolution
schema.py         AvroSchema: all of this
"""
