"""log/repair: damaged segments.

repair.py   giving up damaged bytes, keeping every whole batch
salvage.py  the whole batches in damaged bytes
"""
