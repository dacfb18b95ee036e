"""query/run: running a plan, in this process or in a worker process.

event_loop.py     EngineLoop: the thread that awaits DataFusion and runs timers
local.py          LocalRunner: runs queries in this process
top_n.py          TopNRun: the first rows by time, from few pieces
worker_pool.py    WorkerPool: runs queries in processes that can be killed
protocol.py       messages between the engine and a worker
shared_memory.py  rows for a worker, in a memory file
worker_main.py    the program of a worker process
"""
