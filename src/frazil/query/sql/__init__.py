"""query/sql: the SQL text: dialect, AS OF, table names, errors.

dialect.py      our names translated to DataFusion's
as_of.py        FOR SYSTEM_TIME and FOR SYSTEM_VERSION AS OF
table_names.py  the tables that a text can name
errors.py       DataFusion's errors as errors of ours
"""
