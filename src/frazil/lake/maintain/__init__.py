"""lake/maintain: compaction, snapshot expiry, orphan files.

maintenance.py       Maintenance: all maintenance of the tables
schedule.py          Schedule: when each kind is due
compaction.py        which small files to merge
merge_task.py        one task: merges sorted files into one
replace_files.py     commits new files for old ones, atomically
expire_snapshots.py  which snapshots to keep, and files to delete with the others
orphan_files.py      deletes files that no snapshot references
reachable_files.py   reads which files snapshots reference
delete_files.py      deletes files
"""
