"""load: files of stages into tables, and rows of queries into files.

    stage ──list──> files ──infer──> columns ──read, cast, write──> data files ──commit──> table

    loader.py       Loader: carries out LIST, DESCRIBE, VALIDATE, COPY INTO and CREATE STAGE
    pipes/          COPY INTO that runs by itself, on a schedule or when files come
    table_statements.py  CREATE TABLE … CLONE, ALTER TABLE
    preview.py      the first rows of a file
    stages/         folders, buckets and web servers below the roots of the configuration
    formats/        NDJSON, JSON, CSV, Parquet, ORC, Avro and text, with strict types
    copy/           COPY INTO a table, tasks, and COPY INTO a stage
    into_log/       COPY INTO logs, spans and metrics: through the log
    external/       external tables: files of stages that queries read

A file is loaded once: its URI and ETag are in the ledger of the table, in the same commit as its
rows; the rows of a keyed table are steps that the log compares. No value is changed: what does not
fit its column is an error with file and line.
"""

from frazil.load.copy.columns import type_name
from frazil.load.copy.copy_into import LoadResult
from frazil.load.copy.keyed_target import KeyedLoads
from frazil.load.copy.progress import LoadProgress, WorkDone
from frazil.load.copy.task import FileReport
from frazil.load.copy.unload import UnloadResult
from frazil.load.external.statements import register_external
from frazil.load.external.tables import ExternalTables
from frazil.load.formats.blocks import RowError
from frazil.load.formats.json_values import parse_document, rows_to_table
from frazil.load.into_log.log_loads import LogLoads, LogLoadsConfig, StepLog
from frazil.load.into_log.staging_task import FileRules
from frazil.load.loader import Loader
from frazil.load.pipes.board import PipeStatus
from frazil.load.pipes.pipe_statements import open_pipes
from frazil.load.pipes.scheduler import PipeScheduler
from frazil.load.preview import FilePreview
from frazil.load.stages.stage import Stage, open_stage, staged_files, upload
from frazil.load.stages.staged_file import StagedFile
from frazil.load.table_statements import register_loaded_tables

__all__ = [
    "ExternalTables",
    "FilePreview",
    "FileReport",
    "FileRules",
    "KeyedLoads",
    "LoadProgress",
    "LoadResult",
    "Loader",
    "LogLoads",
    "LogLoadsConfig",
    "PipeScheduler",
    "PipeStatus",
    "RowError",
    "Stage",
    "StagedFile",
    "StepLog",
    "UnloadResult",
    "WorkDone",
    "open_pipes",
    "open_stage",
    "parse_document",
    "register_external",
    "register_loaded_tables",
    "rows_to_table",
    "staged_files",
    "type_name",
    "upload",
]
