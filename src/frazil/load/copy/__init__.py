"""load/copy: files into tables, and rows into files.

copy_into.py     COPY INTO a table: list, infer, write, commit
target.py        CopyTarget: the table that is loaded into
lake_target.py   an Iceberg table
keyed_target.py  a keyed table: loads that are finished whatever is killed, as steps of the log
task.py          tasks: infer the schema of files, or load them
columns.py       declared and inferred columns
row_checks.py    what a row must be, beyond the types of its values
staged_rows.py   rows of a load in local files, before a keyed table has them
transform.py     SELECT over the rows of a file
checks.py        conditions on the new rows
progress.py      what a running load has done
unload.py        COPY INTO a stage
"""
