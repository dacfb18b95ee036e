"""Checks that a connector keeps the contract: run it on your own.

__main__.py      the command: `python -m frazil.connectors.conformance`
source_trial.py  a source in its process over a log, killed at each step
sink_trial.py    a sink in its process over a log, killed between deliveries
"""
