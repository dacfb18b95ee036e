"""Retention and erasure of a node that is killed in the middle, again and again.

load.py    numbered log records that say whether they must go, and how to send many
judge.py   what SQL, Spark, PyIceberg and DuckDB return, and every byte of the folder
run.py     the run: send, remove, kill, start, compare
"""
