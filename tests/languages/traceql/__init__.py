"""Tests of TraceQL.

spans.py           spans with all that a query can name, and plain Python to look at them
test_filters.py    conditions on spans, against Python's answer for each span
test_spansets.py   structural operators, aggregates, groups
test_metrics.py    rates, counts, quantiles, compare
test_parser.py     what is refused, and where
test_tags.py       names and values of attributes
test_tiers.py      the same answers from hot tier and lake
"""
