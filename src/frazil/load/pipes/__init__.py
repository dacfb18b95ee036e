"""load/pipes: COPY INTO that runs by itself.

schedule.py         when a pipe is due: interval, cron, new files, and retries
pipe_state.py       PipeState: what survives a restart, as a checkpoint
board.py            PipeBoard: begins and ends runs, durably; no threads
scheduler.py        PipeScheduler: the thread that starts due runs
pipe_statements.py  CREATE, DROP, PAUSE, RESUME, EXECUTE and SHOW of pipes
"""
