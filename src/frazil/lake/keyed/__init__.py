"""lake/keyed: keyed tables as Iceberg tables, each snapshot the exact rows as of an offset.

definition.py     KeyedDefinition: what the lake knows of a keyed table
schema.py         Iceberg schema, types and Parquet layout
table.py          create, evolve and rename the Iceberg table; refuse changes of other writers
source.py         KeyedSource: where rows and deaths come from
handoff.py        rows and deaths of a round, in files that tasks map
snapshot_files.py data files of a snapshot, each with its delete file
row_positions.py  where in a data file each row version is, kept in memory
write_task.py     a task: rows to a sorted data file
delete_task.py    a task: dead rows of a data file to its one delete file
tasks.py          tasks, run here or in groups on Spark
commit.py         data files, delete files and offsets in one snapshot
freezer.py        Freezer: brings tables from one offset to a later one
merge_files.py    compaction: rewrites files without their dead rows
frozen_table.py   what the lake knows of a table
read_rows.py      the rows of a snapshot, to rebuild local files
"""
