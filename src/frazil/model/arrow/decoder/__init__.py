"""model/arrow/decoder: from OTLP bytes to Arrow.

arena.py     what a walk finds
arrays.py    arrays around them
buffers.py   the buffers of Arrow
columns.py   columns of any level
common.py    the columns that every table begins with
decode.py    decode, decode_numbered: many requests become rows; warm
dispatch.py  the table that steers the walk
fallback.py  the same, whatever is in them; dead letters as rows
fields.py    the fields of OTLP
logs.py      those of logs
metrics.py   those of metrics
requests.py  requests walked, and what is wrong with them
spans.py     those of spans
walk.py      the walk over the bytes

values/      attribute values as text
"""
