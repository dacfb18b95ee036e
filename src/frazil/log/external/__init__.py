"""log/external: reading the log from another process.

observer.py  PartitionObserver: what is durable, without the log's lock
ranges.py    SegmentRange: plan offset ranges as byte ranges, and read them
"""
