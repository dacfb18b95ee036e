"""log/repair: damaged segments.

salvage.py  find the whole batches in damaged bytes
sources.py  stop sources whose last records are lost
repair.py   set damaged bytes aside, keep every whole batch
"""
