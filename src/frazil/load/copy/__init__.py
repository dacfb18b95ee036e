"""load/copy: files into tables, and rows into files.

copy_into.py  COPY INTO a table: list, infer, write, commit
task.py       tasks: infer the schema of files, or load them
columns.py    declared and inferred columns
progress.py   what a running load has done
transform.py  SELECT over the rows of a file
checks.py     conditions on the new rows
unload.py     COPY INTO a stage
"""
