"""kafka: the Kafka port.

    router.py       ApiRouter: which handler answers which API, in which versions
    context.py      RequestContext, ConnectionState: who sent a request
    error_codes.py  ErrorCode: Kafka's codes, and the one of each of our errors
    wire/           messages of the protocol, as classes and as bytes

The port itself is not built yet, so nothing is exported.
"""

__all__ = []
