"""rules/state: what is known of rules between evaluations. No I/O; time is passed in.

alert.py          Alert: one row of an alert rule, and what became of it
alert_state.py    AlertState: the state machine of one alert rule
series_state.py   SeriesState: series that a rule has stored, so that those that end are marked
restore.py        StoredFor: since when alerts were active before a restart
"""
