"""cli/terminal: text, tables, colors and progress on a terminal.

cells.py       rows of a result as such cells
colors.py      Paint: colours, where they are wanted
output.py      standard output, or a file that is there whole or not at all
progress.py    how far long work has come, on standard error
severity.py    how bad a log record is, as a word and a colour
table.py       Table: rows in boxes, or a line for each column
text_width.py  text for a terminal: its width, and nothing in it that the terminal obeys
units.py       times, durations, sizes as people read them
wait.py        how far it is while somebody waits
"""
