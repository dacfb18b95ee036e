"""serve/status: node status and health.

model.py    Status: the response of /api/v1/status
collect.py  reads it from the components
connectors.py  ConnectorSummary: one source or sink
health.py   Check: state of each component, cause and remedy
"""
