"""query/promql: PromQL, evaluated over sorted points by compiled functions.

points.py   PointSource, PointSet: series with their points, in columns
"""
