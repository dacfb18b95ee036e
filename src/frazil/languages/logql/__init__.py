"""languages/logql: LogQL over the table `logs`.

    text -> lexer, parser -> tree -> lowering -> SQL -> lines -> pipeline -> streams
                                                     -> counts -> windows -> vectors -> series

lexer.py               tokens
syntax.py              the tree
stage_parser.py        selectors and stages of pipelines, from tokens
parser.py              parse_logql: whole queries
render.py              a tree as text
units.py               durations and sizes
regex.py               regular expressions of RE2
labels.py              labels of a record, in rows and in SQL
lowering.py            what SQL decides of a selection
line_parsers.py        json, logfmt, pattern, regexp, unpack
templates.py           templates of line_format and label_format
template_functions.py  their functions
go_times.py            times by Go's layouts
pipeline.py            stages as a function over lines
records.py             lines of a selection, newest or oldest first
samples.py             range aggregations over rows
windows.py             range aggregations over samples
series.py              series, and the steps of an evaluation
vectors.py             sum, topk and others
binary.py              operators between numbers and series
metric_query.py        evaluate: a query of numbers
streams.py             which streams there are, and how much they send
fields.py              fields that lines have
log_tail.py            new lines of a selection
"""
