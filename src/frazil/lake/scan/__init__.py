"""lake/scan: the tables as queries read them.

view.py              LakeView: the snapshots that queries read
data_file.py         TableView, TableFile, SnapshotInfo: immutable descriptions
manifests.py         data files and their bounds, read from manifests
position_deletes.py  dead rows of data files of keyed tables
snapshot_info.py     the snapshots of a table and their offsets
table_info.py        metadata of a table for display
catalog_info.py      settings of the catalog for display, without secrets
"""
