"""serve/tables: rows and keys of keyed tables, as the API takes and returns them.

change_times.py   when changes were written
column_values.py  JSON values as values of a column; nothing is rounded, cut or guessed
json_lines.py     rows as JSON lines
keys.py           keys in paths and in JSON
"""
