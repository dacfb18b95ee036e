"""query/counts: row counts by distinct values, cached per piece and data file.

cache.py              Counts: the cache
group_count.py        distinct rows of batches, with counts
dictionary_encode.py  values as small integers, compiled
parquet_counts.py     distinct rows of a data file, with counts
"""
