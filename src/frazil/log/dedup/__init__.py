"""log/dedup: duplicate detection.

digests.py    never twice, for senders that number nothing
producers.py  never twice, for producers that number their batches
"""
