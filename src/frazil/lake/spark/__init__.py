"""lake/spark: the Spark process and its jobs.

fork_server.py  what its Python processes are forked from
jars.py         its jars
jobs.py         tasks on Spark
process.py      its process
session.py      Session: the one place where a SparkSession is made
"""
