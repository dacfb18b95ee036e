"""lake/pyspark: Spark for users: session, shell, SQL, data source.

data_source.py     the PySpark data source `frazil`
shell.py           a shell with one, and scripts
source_options.py  its options
sql.py             SQL on Spark over hot and lake
user_session.py    a SparkSession for people
"""
