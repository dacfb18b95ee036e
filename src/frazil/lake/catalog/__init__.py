"""lake/catalog: the Iceberg catalog.

catalog.py       the catalog, for PyIceberg and for Spark
sql.py           an SQL catalog that parses each metadata file once
rest.py          a REST catalog with timeouts
commit_check.py  rejected commits, checked against the table
relocate.py      tables of a folder that was copied or moved
file_io.py       metadata files, synced before the catalog names them
own_files.py     names of files that only we write
"""
