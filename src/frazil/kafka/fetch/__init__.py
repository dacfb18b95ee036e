"""kafka/fetch: records out of the log.

fetch.py         Fetch: long poll over many partitions
commit_watch.py  CommitWatch: fetches that wait for the next commit of a partition
reader_pool.py   ReaderPool: open readers, kept from one fetch to the next
offsets.py       Offsets: ListOffsets, OffsetForLeaderEpoch
"""
