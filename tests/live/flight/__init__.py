"""The Flight SQL port of a real node.

jdbc_jar.py      the JDBC driver, fetched by `make setup`
JdbcJudge.java   what a BI tool does by JDBC, as lines of results
test_jdbc.py     runs it
test_port.py     the port outlives a reader that dies, and ends with the node
"""
