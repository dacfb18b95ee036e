"""Tests with Apache Iceberg's reference REST catalog.

jars.py               the jars of the server, listed in jars.lock
server.py             the server as a separate process
proxy.py              a proxy that damages chosen requests
test_rest_catalog.py  each row once, whatever happens to requests
"""
