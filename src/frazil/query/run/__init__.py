"""query/run: running a plan, in this process or in a worker.

event_loop.py     the thread that waits for the engine and keeps time
local.py          running in this process
protocol.py       what both say to each other
shared_memory.py  rows on their way there
top_n.py          the first rows by time, from few pieces
worker_main.py    the program of that process
worker_pool.py    running in a process that can be killed
"""
