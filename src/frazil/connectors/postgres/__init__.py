"""Changes of a Postgres database, read from its log (TYPE postgres).

connector_type.py  POSTGRES: what TYPE postgres is in CREATE SOURCE
source.py          PostgresSource: first the rows, then the changes; what it may acknowledge
options.py         PostgresOptions: TABLES, SLOT, PUBLICATION, RENAME
snapshot.py        the first copy of tables, as of one moment
changes.py         ChangeAssembler: from messages to batches of events, one stream per table
envelope.py        change events as Debezium writes them
json_values.py     values of Postgres as JSON
pgoutput.py        messages of the plugin
replication.py     the replication connection
catalog.py         what the catalog of the server says
positions.py       positions in the log, and acknowledgements
topics.py          the topic of a table, the slot of a source
keyed_tables.py    the statements that create keyed tables of them
"""
