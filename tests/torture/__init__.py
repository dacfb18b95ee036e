"""Torture tests: break the log and the node in every way we know, and check what survived.

__main__.py   the command: one kind, a number of cycles, a seed; prints a JSON verdict last
ids.py        records that carry their identity and can be regenerated from it
history.py    requests and their outcomes, recorded by a separate process
checker.py    a pure function from history and observations to a verdict
report.py     the report of a run, and when it counts as proof
log/          the log: simulated faults, bit rot, SIGKILL, failing storage calls, power cuts
serving/      a node's endpoints: lost responses, overload, sealing and eviction under queries
lake/         an appender broken at every step: each row once, each snapshot a prefix of the log
tables/       keyed tables on a simulated disk: always the fold of a prefix of their log
sql/          hostile SQL against a node that must go on acknowledging
processes/    a node whose reader, fork server and query workers crash and hang under load
postgres/     Postgres change capture: kills of source, node and Postgres under random transactions
connectors/   sources and sinks whose processes, reader and node are killed
removal/      a node killed while it removes expired and erased rows, down to the last byte
node/         a whole node with Spark, killed and stopped at random under load; on a full disk
"""
