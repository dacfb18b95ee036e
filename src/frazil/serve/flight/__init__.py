"""serve/flight: the Flight SQL port: rows as Arrow, for ADBC, JDBC and BI tools.

port.py          FlightPort: opens and closes the server
server.py        FlightSqlServer: the methods of Flight, and which command goes where
messages.py      the messages of Flight SQL, as protobuf classes
access.py        who may call: tokens as bearer or password, limits of concurrent calls
running.py       RunningStreams: streams that are being read; cancellation
tickets.py       what a ticket has: the query, complete, so that any reader can serve it
prepared.py      PreparedStatements: handles that expire
parameters.py    values that clients bind
statement_types.py  types of the values of INSERT, UPDATE and DELETE
rows.py          the rows of queries and statements as streams
catalog.py       catalogs, schemas, tables and keys, as tables
server_info.py   what the server can do, as clients ask for it
data_types.py    the types of SQL columns
failures.py      errors as Flight has them

Calls run in threads of Flight's server. Queries run in the engine's worker processes, within its
limits; this process passes their batches on.
"""
