"""Torture by SQL: hostile texts against a real node, while a prober sends and every ack counts.

texts.py   hostile texts from a seed: functions with extreme arguments, clauses nested, repeated
run.py     attackers, a prober and a scale around one node
"""
