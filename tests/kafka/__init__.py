"""The Kafka port.

wire/   codecs of the protocol's messages
"""
