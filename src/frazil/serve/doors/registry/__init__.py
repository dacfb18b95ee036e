"""serve/doors/registry: the API of Confluent's schema registry, below /registry.

door.py      the paths, and errors with the numbers that its clients know
params.py    parameters and bodies
answers.py   what is sent back
subjects.py  subjects and their versions
schemas.py   schemas by id, and all of them
settings.py  compatibility levels and modes; is a schema compatible?
"""
