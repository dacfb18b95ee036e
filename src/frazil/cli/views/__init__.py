"""cli/views: what commands print.

banner.py        the start banner of `frazil up`
status.py        the screen of `frazil status`
rows.py          rows as a table, JSON, CSV, Arrow or Parquet
tail_line.py     one record of `frazil tail`
waterfall.py     a trace of `frazil trace`
tables.py        keyed tables, rows and changes of `frazil tables`
topics.py        rows of `frazil topics`, how long a topic keeps records
kafka_record.py  one record of `frazil consume`
removal.py       retention rules, and results of a removal
"""
