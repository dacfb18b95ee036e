"""rules/store: series of rules in the log, as OTLP metrics.

series_labels.py labels of series as OTLP's names, attributes and resources, and back
log_series.py    LogSeries: appends samples
stored_for.py    reads ALERTS_FOR_STATE after a restart
"""
