"""serve/metrics: the Prometheus page.

aliases.py     our numbers under names that others know
exposition.py  all metrics as text
families.py    every metric under the name that Prometheus knows it by
gauges.py      what is measured when somebody looks
process.py     what the system says of this process
"""
