"""serve/topics: what the API shows of topics, read from the log's files.

summary.py   a topic and its partitions: offsets, sizes, settings
message.py   a record as JSON: text, JSON or hexadecimal digits, cut at a limit
reading.py   messages of a topic, newest or oldest first; bounded
tail.py      TopicPoller: new messages, for live tails
"""
