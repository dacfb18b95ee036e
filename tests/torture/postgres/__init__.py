"""Postgres change capture under a random workload, with kills of connector, node and Postgres.

workload.py  transactions of several writers: large values, DDL, truncates, changes of keys
child.py     a process with a log and a source, to be killed
run.py       the run, and its verdict: topics against tables, and against an audit by triggers
"""
