"""cli/shell: the interactive SQL shell.

shell.py      SqlShell: the shell of `frazil sql`
commands.py   dot commands, and their psql aliases
completer.py  completion with Tab
doors.py      queries and statements, each to its door
history.py    line editing, and the history file
"""
