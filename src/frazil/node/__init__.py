"""node: the writer process of a node, and the reader process that it watches over.

    clients ─> OTLP ports ─> log              writer: this process; acknowledges
    clients ─> API port ──┐    │ files, commit signal
                          └> reader           hot tier, lake, SQL, API; may die, is restarted

    run.py             opens and closes the components; signals
    api_listener.py    ApiListener: accepts API connections, answers probes
    reader_process.py  ReaderProcess: starts, watches and restarts the reader
    writer_status.py   what the writer reports about itself

The writer loads no query engine, no page and no Spark.
"""

from frazil.node.run import NodeAddresses, log_room, run
from frazil.node.writer_status import addresses_of, writer_rates, writer_status

__all__ = [
    "NodeAddresses",
    "addresses_of",
    "log_room",
    "run",
    "writer_rates",
    "writer_status",
]
