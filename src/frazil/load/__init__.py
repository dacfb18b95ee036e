"""load: files of stages into tables, and rows of queries into files.

    stage ──list──> files ──infer──> columns ──read, cast, write──> data files ──commit──> table

    loader.py       Loader: carries out LIST, DESCRIBE, VALIDATE, COPY INTO and CREATE STAGE
    preview.py      the first rows of a file
    pipes/          COPY INTO that runs by itself, on a schedule or when files come
    stages/         folders, buckets and web servers below the roots of the configuration
    formats/        NDJSON, JSON, CSV, Parquet, ORC, Avro and text, with strict types
    copy/           COPY INTO a table, tasks, and COPY INTO a stage

A file is loaded once: its URI and ETag are in the ledger of the table, in the same commit as its
rows. No value is changed: what does not fit its column is an error with file and line.
"""

from frazil.load.copy.columns import type_name
from frazil.load.copy.copy_into import LoadResult
from frazil.load.copy.progress import LoadProgress, WorkDone
from frazil.load.copy.task import FileReport
from frazil.load.copy.unload import UnloadResult
from frazil.load.formats.blocks import RowError
from frazil.load.loader import Loader
from frazil.load.pipes.board import PipeStatus
from frazil.load.pipes.pipe_statements import open_pipes
from frazil.load.pipes.scheduler import PipeScheduler
from frazil.load.preview import FilePreview
from frazil.load.stages.stage import Stage, open_stage, staged_files, upload
from frazil.load.stages.staged_file import StagedFile

__all__ = [
    "FilePreview",
    "FileReport",
    "LoadProgress",
    "LoadResult",
    "Loader",
    "PipeScheduler",
    "PipeStatus",
    "RowError",
    "Stage",
    "StagedFile",
    "UnloadResult",
    "WorkDone",
    "open_pipes",
    "open_stage",
    "staged_files",
    "type_name",
    "upload",
]
