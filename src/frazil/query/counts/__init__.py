"""query/counts: row counts kept per segment and file.

cache.py              Counts: what pieces have how often, kept with them
dictionary_encode.py  values as small numbers
group_count.py        rows that say the same, as one row and a number
parquet_counts.py     what files have how often
"""
