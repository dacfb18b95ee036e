"""connectors: sources that fill topics from other systems, and sinks that empty them into those.

    contract.py         Source, Sink, ConnectorType: what a connector implements
    options.py          options of statements, as the dataclass of a connector type
    connector_types.py  types of connectors: ours and those of installed packages
    step_names.py       what the log knows a connector by
    own_headers.py      headers that the log adds to records
    messages.py         between a node and the process of a connector
    connector_link.py   ConnectorLink: the process's end
    source_loop.py      poll, encode, send, commit
    sink_loop.py        take, flush, say what is safe
    process.py          the program of a connector's process

    files/              lines of files
    http/               web servers
    postgres/           changes of a Postgres database
    runtime/            how a node runs connectors
    conformance/        checks that a connector keeps the contract

A connector is a process of its own. The node appends what a source sends together with the
position to go on from, as one step of the log; a sink gets the records of a topic in order.
"""

from frazil.connectors.connector_types import connector_type, type_names
from frazil.connectors.contract import (
    BATCH_BYTES,
    POSITION_BYTES_MAX,
    ConnectorContext,
    ConnectorType,
    KnownPosition,
    RecordError,
    Sink,
    SinkRecord,
    Source,
    SourceBatch,
)
from frazil.connectors.options import OptionValue, options_of

__all__ = [
    "BATCH_BYTES",
    "POSITION_BYTES_MAX",
    "ConnectorContext",
    "ConnectorType",
    "KnownPosition",
    "OptionValue",
    "RecordError",
    "Sink",
    "SinkRecord",
    "Source",
    "SourceBatch",
    "connector_type",
    "options_of",
    "type_names",
]
