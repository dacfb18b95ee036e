"""kafka/produce: batches from clients into the log.

produce.py            Produce: checks batches and submits them in order
otlp_batches.py       OtlpBatches: batches of OTLP requests, for the topics of telemetry
pending.py            PendingProduce: the response to a request, once all its batches are durable
refused_sequences.py  RefusedSequences: batches behind a refused one are refused, too
"""
