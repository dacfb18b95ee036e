"""lake/tables: table definitions: schema, field ids, properties.

tables.py       create tables and bring them up to date
schema.py       Iceberg schema, partition spec and sort order
field_ids.py    permanent field ids
properties.py   sort columns, bloom filters, Iceberg properties
evolution.py    merge an existing schema with ours
promoted.py     promoted columns, by field id
record_rows.py  records of other topics as rows
"""
