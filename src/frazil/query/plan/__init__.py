"""query/plan: from a SQL text to a plan: what is scanned and pruned.

planner.py        Planner: plans a text over empty tables
session.py        DataFusion sessions: tables, views, functions and limits
plan.py           QueryPlan: scans, predicates, columns; the check of scans that run
parameters.py     types of a query's parameters
predicates.py     what a filter requires of each column
count_rewrite.py  CountQuery: queries that only count rows
pruning.py        which pieces and data files can match
keyed_pruning.py  which row segments of keyed tables can match; look-ups by key
projection.py     which columns are registered
external_scan.py  which files of external tables are fetched and read
explain.py        what EXPLAIN adds
"""
