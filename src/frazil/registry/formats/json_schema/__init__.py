"""registry/formats/json_schema: JSON Schema, drafts 4 to 2020-12.

documents.py      JsonDocuments: a schema and those it refers to; `$ref` and names
checks.py         are the values of keywords what they must be?
compatibility.py  is all that fits one schema valid by another?
schema.py         JsonSchema: all of this
"""
