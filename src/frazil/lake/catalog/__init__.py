"""lake/catalog: the Iceberg catalog.

catalog.py       the catalog, for PyIceberg and for Spark
commit_check.py  commits that were done, though called refused
file_io.py       metadata that is on disk before anybody is told
rest.py          a REST catalog that is not waited for without end
"""
