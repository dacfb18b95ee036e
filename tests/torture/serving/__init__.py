"""Torture tests of a node's endpoints.

lost_answer.py  responses that clients never receive, also across kill -9 of the node
overload.py     ten times the load that a node can take, over both transports
rows.py         kill -9 while the node seals, and damaged hot files: SQL results must not change
tiers.py        continuous count queries while Spark commits and compacts and hot rows are evicted
"""
