"""lake/pyspark: Spark for users: session, shell, SQL, data source.

user_session.py    a SparkSession for users
shell.py           a Python shell and scripts with a session
sql.py             SQL on Spark over log and lake
data_source.py     the PySpark data source `frazil`
source_options.py  options and positions of the data source
"""
