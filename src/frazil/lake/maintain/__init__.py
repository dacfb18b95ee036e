"""lake/maintain: compaction, snapshot expiry, orphan files.

compaction.py        which files are to be joined
delete_files.py      taking files away
expire_snapshots.py  which snapshots stay
maintenance.py       Maintenance: what tables need besides new rows
merge_task.py        what one task of that does
orphan_files.py      files that nobody names
reachable_files.py   which files somebody does name
replace_files.py     files for files in one step, or not at all
schedule.py          when that is due
"""
