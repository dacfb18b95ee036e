"""load/copy: files into tables, and rows into files.

copy_into.py  COPY INTO a table: list, infer, write, commit
task.py       tasks: infer the schema of files, or load them
columns.py    declared and inferred columns
transform.py  SELECT over the rows of a file
checks.py     conditions on the new rows
progress.py   what a running load has done
unload.py     COPY INTO a stage
"""
