"""log/external: reading the log from another process.

observer.py       PartitionObserver: what is durable, without the log's lock
ranges.py         SegmentRange: plan offset ranges as byte ranges, and read them
observed_log.py   ObservedLog: the reading half of `Log`
owner.py          what an observer asks the log's owner to do
append_channel.py  AppendChannel: appends of an observer, many in flight
log_copy.py       LogCopy: copies the durable part of a log while its owner writes
commit_signal.py  CommitSignal: wakes observers after a commit
"""
