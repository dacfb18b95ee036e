"""query/sql: the SQL text: dialect, AS OF, changes, table names, views, entry spans, errors.

dialect.py      our names translated to DataFusion's
as_of.py        FOR SYSTEM_TIME and FOR SYSTEM_VERSION AS OF
changes.py      changes('t', from, to)
table_names.py  the tables that a text can name
views.py        views of users that a text needs
entry_spans.py  which spans are requests of a service
errors.py       DataFusion's errors as errors of ours
"""
