"""The Flight SQL port, by Arrow's own client and by the ADBC driver.

opened.py             a port over an open node
commands.py           what ADBC does not send, by Arrow's own client
test_queries.py       rows, types, parameters, statements, limits, cancellation
test_metadata.py      what BI tools ask about the server and its tables
test_access.py        tokens, TLS, limits of calls
"""
