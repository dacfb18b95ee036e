"""log/repair: damaged segments.

salvage.py  find the whole batches in damaged bytes
repair.py   set damaged bytes aside, keep every whole batch
"""
