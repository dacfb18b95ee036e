"""lake/scan: what queries see of the tables.

catalog_info.py   the catalog, for people: without its secrets
data_file.py      a snapshot, its files, and what is known of them
manifests.py      that, read from manifests
snapshot_info.py  what is known of snapshots
table_info.py     what is known of a table, for people who look at it
view.py           LakeView: what queries see of the tables
"""
