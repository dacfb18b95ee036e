"""cli/shell: the interactive SQL shell.

commands.py   its commands
completer.py  what it can complete
history.py    what was written before
shell.py      Repl: the shell of `frazil sql`
"""
