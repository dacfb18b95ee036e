"""rules/template: Go templates in labels and annotations, the part that needs no query.

syntax.py      text to nodes
values.py      values as Go prints them, and printf
functions.py   humanize, match, title, eq, …
evaluate.py    Template: nodes to text
"""
