"""serve/saved: what users save, as files.

files.py      SavedFiles: reads and writes the files of one kind
dashboard.py  Dashboard: panels on a grid
view.py       SavedView: the state of a screen
query.py      SavedQuery: SQL
"""
