"""The Kafka port.

port/   the port over real sockets
wire/   codecs of the protocol's messages
"""
