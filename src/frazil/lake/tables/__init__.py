"""lake/tables: table definitions: schema, field ids, properties.

evolution.py    what somebody has changed in one
field_ids.py    the number of every field, for good
properties.py   how rows lie: order, filters, settings
record_rows.py  other topics as tables
schema.py       their columns in Iceberg's words
tables.py       tables made, and brought up to date
"""
