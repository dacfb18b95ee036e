"""serve/status: node status and health.

collect.py  that, looked up
health.py   is each room well, why not, and what next
model.py    Status: how it does, as one answer
"""
