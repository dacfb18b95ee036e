"""The architecture as a test. Each rule is a function from source text to findings, so that the
rule itself is tried on a snippet that breaks it before it judges the house.

    sources.py             what a rule reads: modules, rooms, imports, dotted references
    test_floors.py         imports go down; neighbours never meet; rooms are entered by their door
    test_edges.py          `async def` only at the edges
    test_dependencies.py   every dependency has an owning room
    test_doors.py          every door says what is behind it
    test_seams.py          disk, time and chance are passed in
    test_errors.py         the error tree is drawn; nothing swallows all errors in silence
"""
