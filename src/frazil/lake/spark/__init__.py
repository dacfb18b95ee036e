"""lake/spark: the Spark process and its jobs.

session.py      Session: the only place that creates a SparkSession
process.py      SparkProcess: the child process
jobs.py         runs tasks on Spark
fork_server.py  the process that Spark's Python workers are forked from
jars.py         the jars that Spark needs
"""
