"""serve/tables: rows and keys of keyed tables, as the API takes and returns them.

arrow_rows.py     rows as an Arrow IPC stream
change_origins.py when changes were written, and by whom
column_values.py  JSON values as values of a column; nothing is rounded, cut or guessed
ipc_sizes.py      how large an Arrow IPC stream becomes
json_lines.py     rows as JSON lines
keys.py           keys in paths and in JSON
"""
