"""ingest: receives OTLP over gRPC and HTTP. A request is acknowledged once it is durable.

    grpc/ or http/ -> Gate -> read body -> decompress -> JSON to protobuf -> scan
                       |                                                     | malformed, rejected
                    refused               append to log <- limit <- redact <-+
                                            durable:         | cut, rejected
                                          acknowledged

    ports.py         OtlpPorts: both ports
    grpc/            OTLP/gRPC
    http/            OTLP/HTTP
    admission.py     Gate, PendingReads: which requests may enter, and which must leave
    receiver.py      Receiver: the path of a request to the log
    request_check.py RequestCheck: what is checked, removed and cut before a request is stored
    record_intake.py RecordIntake: requests that arrive as records of the Kafka port
    file_intake.py   FileIntake: records of files, in the tasks of a load
    series.py        SeriesLimit: metric series of each service
    otlp/            the OTLP wire format: scan, JSON, decompression, redaction, limits
    status_codes.py  HTTP and gRPC status of each error
    warm_up.py       compiles all loops ahead, for `frazil warm`
    totals.py        requests and records accepted and refused since start

Everything is owned by the event loop. Large bodies are decompressed, converted and scanned in the
threads "frazil-ingest". The log's writer thread completes futures.
"""

from frazil.ingest.file_intake import FileIntake
from frazil.ingest.grpc.compression import unpack
from frazil.ingest.grpc.listening import GrpcLimits, listening_server
from frazil.ingest.otlp.decompress import decompress
from frazil.ingest.otlp.gauge_request import GaugeValue, gauge_request
from frazil.ingest.otlp.log_request import LogValues, log_request
from frazil.ingest.otlp.redact import (
    CompiledRules,
    Redactor,
    compile_rules,
    load_hash_key,
    read_key_file,
)
from frazil.ingest.ports import OtlpPorts
from frazil.ingest.status_codes import codes_of
from frazil.ingest.totals import (
    Totals,
    redacted_by_action,
    refused_by_reason,
    rejected_by_reason,
    requests_by_transport,
    totals_of,
    truncated_by_limit,
)
from frazil.ingest.warm_up import warm_all

__all__ = [
    "CompiledRules",
    "FileIntake",
    "GaugeValue",
    "GrpcLimits",
    "LogValues",
    "OtlpPorts",
    "Redactor",
    "Totals",
    "codes_of",
    "compile_rules",
    "decompress",
    "gauge_request",
    "listening_server",
    "load_hash_key",
    "log_request",
    "read_key_file",
    "redacted_by_action",
    "refused_by_reason",
    "rejected_by_reason",
    "requests_by_transport",
    "totals_of",
    "truncated_by_limit",
    "unpack",
    "warm_all",
]
