"""languages/traceql: TraceQL, over the table `spans`.

    text ─> lexer ─> parser ─> nodes ─> conditions (SQL) ─> rows ─> spansets ─> traces, series

nodes.py       what a query consists of
lexer.py       splits a query into lexemes
parser.py      lexemes to nodes; errors with their position
fields.py      attributes and intrinsics as SQL
conditions.py  field expressions as SQL; what they need besides the row of the span
span_rows.py   reads spans with the conditions that they meet
spansets.py    structural operators, aggregates, grouping: pipelines over the spans of one trace
candidates.py  which traces may match, and their spansets
values.py      typed values of attributes
search.py      find traces
metrics.py     rates, counts, quantiles over time
series.py      how the samples of a metrics query become series
compare.py     attributes of selected spans beside those of all others
tags.py        names of attributes, and their values
"""
