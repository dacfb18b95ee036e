"""log/dedup: duplicate detection.

digests.py           DigestWindow: by digest of the request, for OTLP clients
producers.py         Producers: by producer id and sequence, for Kafka producers
source_positions.py  SourcePositions: by position, for programs that copy from elsewhere
"""
