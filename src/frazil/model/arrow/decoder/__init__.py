"""model/arrow/decoder: OTLP bytes to Arrow.

bytes ── walk ──> arena ── buffers ──> arrays ── columns ──> rows

decode.py    decode, decode_dictionary: requests to rows; warm
fallback.py  decode whatever succeeds; dead letters as rows
requests.py  walk requests, and report invalid ones
walk.py      the compiled walk over the bytes
fields.py    the fields of OTLP and their slots
dispatch.py  the dispatch table of the walk
arena.py     what a walk found, as an array of words
buffers.py   Arrow buffers from the arena
arrays.py    Arrow arrays around buffers
columns.py   columns of one level
common.py    columns of resources and scopes
logs.py      columns of logs
spans.py     columns of spans
metrics.py   columns of metrics
promoted.py  columns of attributes that the settings promote

values/      attribute values as text
"""
