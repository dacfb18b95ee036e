"""model/arrow/decoder/values: attribute values as text.

number_text.py  numbers as text
sort_keys.py    attributes in the order of their keys
value_text.py   values as text
value_types.py  what values were before they became text
"""
