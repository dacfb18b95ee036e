"""registry/stored: what the registry knows, in memory and in `_schemas`.

model.py    what is stored: schemas, versions, levels, modes
errors.py   RegistryError: an error with a number that clients know
records.py  keys and values of `_schemas`
state.py    RegistryState: the fold of these records
topic.py    SchemasTopic: follows `_schemas`, and appends to it
"""
