"""query/plan: from a text to a plan: what is scanned, pruned, isolated.

count_rewrite.py  whether a query only counts rows
explain.py        what EXPLAIN says of all that
isolation.py      what may be planned and run in this process
plan.py           Plan: what is scanned, what is demanded, what may run here
planner.py        Planner: from a text to a plan
predicates.py     what a filter demands of each column
projection.py     which columns the engine is handed
pruning.py        which pieces can match
session.py        what the engine may see and do: tables, views, functions, nothing else
"""
