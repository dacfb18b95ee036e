"""languages/prometheus: the tables as series of Prometheus.

    selector ─> families, directory: which metrics ─> part_reader: rows ─> point_groups: points

names.py          names of metrics and labels, as Prometheus' OTLP receiver makes them
selectors.py      `match[]`: selectors without points
matching.py       conditions on labels
families.py       metrics, and the series that each becomes
directory.py      which metrics have points, remembered for a short time
labels.py         labels of series, kept by hash
kernels.py        numbers series and sorts points, compiled
spread_points.py  buckets and quantiles: rows that are several points
native_points.py  exponential histograms as native histograms
point_groups.py   joins what was read of several metrics
span_series.py    series computed from spans
part_reader.py    reads the rows of one kind of values
series_listing.py names and values of labels, what metrics are
exemplars.py      exemplars of the points of series
answer_json.py    answers of PromQL as JSON
warm_series.py    compiles what reading calls
table_points.py   TablePointSource: what PromQL reads from
"""
