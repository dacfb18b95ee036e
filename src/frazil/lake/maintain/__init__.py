"""lake/maintain: retention, erasure, compaction, snapshot expiry, orphan files.

maintenance.py       Maintenance: all maintenance of the tables
maintained.py        Maintained: what it has done
schedule.py          Schedule: when each kind is due
row_condition.py     RowCondition: which rows are removed
remove_rows.py       removes rows: which files to drop, to read and to rewrite
remove_task.py       one task: writes a file again without removed rows
clean_files.py       CleanFiles: files that have no rows to remove
compaction.py        which small files to merge
merge_task.py        one task: merges sorted files into one
input_file.py        InputFile: a data file as tasks read it
replace_files.py     commits new files for old ones, atomically
expire_snapshots.py  which snapshots to keep, and files to delete with the others
orphan_files.py      deletes files that no snapshot references
reachable_files.py   reads which files snapshots reference
delete_files.py      deletes files
"""
