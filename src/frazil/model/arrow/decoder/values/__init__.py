"""model/arrow/decoder/values: attribute values as text.

number_text.py  format numbers
sort_keys.py    sort attributes by key
value_text.py   values as text, nested ones as JSON
value_types.py  type letters of values that became text
"""
