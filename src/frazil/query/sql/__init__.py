"""query/sql: the SQL text: dialect, AS OF, table names, errors.

as_of.py        tables of other times
dialect.py      how our words are spelled for the engine
errors.py       the engine's complaints as errors of ours, with place and suggestion
table_names.py  all tables that a text can name
"""
