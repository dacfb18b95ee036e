"""cli/views: what commands print.

banner.py     what that tells a human
rows.py       rows as a table, JSON, CSV, Arrow or Parquet
status.py     that on one screen
tail_line.py  such a record as a line
waterfall.py  a trace, drawn
"""
