"""languages/promql/kernels: compiled loops over points and grids of series x steps.

arrays.py    arrays as the kernels take them
sums.py      sums that lose no digits, quantiles of a few values
windows.py   which points a step sees
rates.py     rate, increase, delta, irate, idelta
over_time.py the functions named ..._over_time, and regressions
groups.py    aggregations over the series of a group
buckets.py   quantiles and fractions of classic histograms
"""
