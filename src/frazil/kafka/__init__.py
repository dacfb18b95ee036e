"""kafka: the Kafka port.

wire/   messages of the protocol, as classes and as bytes

The port itself is not built yet, so nothing is exported.
"""

__all__ = []
