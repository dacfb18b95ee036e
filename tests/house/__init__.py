"""The architecture as tests. Each rule is a function from source text to findings, tried first on a
snippet that breaks it before it judges the package.

    sources.py             what a rule reads: modules, rooms, imports, dotted references
    test_floors.py         imports go down; neighbours never meet; rooms are entered by their door
    test_folders.py        folders inside a room import each other in one direction
    test_doors.py          every room and folder lists its files; only rooms export names
    test_names.py          one public class per name, sizes defined once, short modules
    test_edges.py          `async def` only at the edges
    test_dependencies.py   every dependency has an owning room
    test_seams.py          disk, time and randomness are passed in
    test_errors.py         the error tree is drawn; nothing catches all errors without a reason
"""
