"""query/run: planning and running queries in worker processes.

    engine's process                                worker process
    worker_pool ── PlanRequest ──> executor: translate, plan
    prune      <── Planned ──────
    references ── RunRequest ────> part_cache: map rows; executor: run
    results    <── rows ─────────

worker_pool.py   WorkerPool: starts, limits, kills and reuses workers
fork_client.py   ForkServer: the process that workers are forked from, as the engine sees it
protocol.py      messages between the engine and a worker
references.py    what a query reads, as sent to the worker
copied_rows.py   rows that are copied for one query
timers.py        Timers: timeouts and checks
fork_server.py   the process that workers are forked from
worker_main.py   the program of a worker
part_cache.py    PartCache: from references to rows
executor.py      Executor: plans and runs queries
staged_rows.py   RowSelect: queries over rows that are being loaded, in tasks
top_n.py         TopNRun: the first rows by time, from few pieces
"""
