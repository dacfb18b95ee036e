"""appender: `frazil appender`: fills the tables from Kafka, in a process without a log of its own.

    run.py            run: opens the lake, stops at a signal
    kafka_tables.py   KafkaTables: keyed tables that topics feed, for the lake's thread
    fed_table.py      FedTable: one of them: its fold, its dead letters, its local files
    definitions.py    their definitions: from statements, local files, and the lake

On disk, below the data folder:

    frazil.lock                        one process
    tables/<name>/table.ckpt           definition of a keyed table; made again from the lake
                 /<partition>/         row files and key index; made again from the lake and Kafka
    lake/scratch/, lake/handoff/       temporary files
"""

from frazil.appender.run import run

__all__ = ["run"]
