"""cli/terminal: text, tables, colors and progress on a terminal.

text_width.py  width, padding and escaping of text
colors.py      Colors: colored text, if the terminal supports it
units.py       durations, sizes and counts for people
severity.py    severity of a log record as a word and a color
table.py       Table: rows in boxes, or one line per column
cells.py       rows of a result as table cells
output.py      write to standard output, or atomically to a file
progress.py    ProgressLine: progress of long work, on standard error
load_progress.py  progress of a COPY
wait.py        run long work while showing its progress
"""
