"""load/into_log: COPY INTO logs, spans and metrics: rows of files as requests in the log.

    files ── tasks: read, map, check ──> staged load ── steps ──> log ──> ledger

log_loads.py    LogLoads: carries out such statements, and finishes what a crash has cut
load_finisher.py  LoadFinisher: a thread that finishes loads after the start of a node
log_plan.py     what a statement means: files, columns, options that do not apply
staging_task.py reads files and stages requests, in tasks
requests.py     rows, or lines of OTLP/JSON, as requests that may be stored
log_columns.py  columns as fields of log records
staged_load.py  StagedLoad: requests on disk that will be appended
"""
