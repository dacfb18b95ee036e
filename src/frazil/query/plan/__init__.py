"""query/plan: from a SQL text to a plan: what is scanned, pruned and isolated.

planner.py        Planner: plans a text over empty tables
session.py        DataFusion sessions: tables, views, functions and limits
isolation.py      what may be planned and run in this process
plan.py           QueryPlan: scans, predicates, columns; the check of scans that run
predicates.py     what a filter requires of each column
count_rewrite.py  CountQuery: queries that only count rows
pruning.py        which pieces and data files can match
projection.py     which columns are registered
explain.py        what EXPLAIN adds
"""
