"""torture/tables: keyed tables over a simulated disk.

sim.py      one seed: changes, seals, checkpoints, faults and ends, judged by a dictionary
mutants.py  bugs put in on purpose
soak.py     a table on a real disk, changed for hours
"""
