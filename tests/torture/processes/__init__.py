"""Torture of a node's processes: what reads is killed or stopped again and again, under load.

run.py     a run: one node, one signal after the other, and the checks at the end
acts.py    the signals: to the reader, the fork server or a query worker; which processes there are
load.py    clients that send numbered logs, each of which must be acknowledged at the first attempt
asking.py  clients that query all the time, and a prober that measures when the API is back

The writer is never touched. It must acknowledge everything, and restart what died.
"""
