"""kafka/wire: Kafka's messages as classes, and their bytes.

    frame -> decode_request_header -> decode_request -> FetchRequest       FetchResponse
                                                                                 |
    frame <- encode_response <---------------------------------------------------+

headers.py      frames: header and message of requests and responses, for servers and clients
records.py      keys and values of internal topics, metadata of consumers
codec.py        encode, decode: one message; compiles a version when it is first used
apis.py         Api: key, name, versions and classes of an API
api_table.py    the table of APIs; generated
messages/       one class per message; generated from Kafka's definitions
schema.py       Field, Versions, KafkaMessage: how a class describes its layout
layout.py       Layout: the fields of one version
decoder.py      writes the function that reads one version
encoder.py      writes the function that writes one version
function_text.py  text of such a function
primitives.py   what such a function calls; limits
__main__.py     shows such a function: `python -m frazil.kafka.wire decode FetchRequest 12`
"""
