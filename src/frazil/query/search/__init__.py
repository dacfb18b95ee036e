"""query/search: the search language, filters, facets.

to_sql.py    a parsed query as SQL conditions of a table
filters.py   filters and time ranges as SQL; the only place that writes literals
severity.py  names of severity numbers
cursor.py    Cursor: position of a row, for pagination
render.py    a search as readable SQL
fields.py    searchable field names
facets.py    most frequent values of fields
hints.py     why a search has no rows, and the nearest one that has some
"""
