"""shop: an hour of telemetry of a web shop with forty services, as requests of OTLP.

    requests.py     Shop: the requests, in the order in which they come

Made for benches that need millions of rows: some hundred requests are made with protobuf, and then
repeated with other times, ids and numbers written over their bytes.
"""

from bench.shop.requests import BEGIN_NS, HOUR_NS, SERVICES, Shop, trace_id_of

__all__ = ["BEGIN_NS", "HOUR_NS", "SERVICES", "Shop", "trace_id_of"]
