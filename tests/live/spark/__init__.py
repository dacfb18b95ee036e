"""Tests of Frazil as a source of Spark streams.

jobs.py          runs the jobs of examples/ in one process
test_docs.py     the examples of docs/spark.md
test_streams.py  streams that are killed and restarted
"""
