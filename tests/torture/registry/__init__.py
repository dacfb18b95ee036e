"""torture/registry: a process that registers schemas is killed between id, append and answer.

child.py  registers, deletes and compacts, tells what was acknowledged, and kills itself
run.py    the run, and its judge
"""
