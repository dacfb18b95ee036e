"""query/prometheus: the tables as series of Prometheus.

    selector ─> families, directory: which metrics ─> part_reader: rows ─> point_groups: points

names.py          names of metrics and labels, as Prometheus' OTLP receiver makes them
matching.py       conditions on labels
families.py       metrics, and the series that each becomes
directory.py      which metrics have points, remembered for a short time
labels.py         labels of series, kept by hash
kernels.py        numbers series and sorts points, compiled
spread_points.py  buckets and quantiles: rows that are several points
native_points.py  exponential histograms as native histograms
point_groups.py   joins what was read of several metrics
part_reader.py    reads the rows of one kind of values
table_points.py   TablePointSource: what PromQL reads from
"""
