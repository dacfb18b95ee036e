"""query/functions: our SQL functions.

compiling.py       compiled loops
json_path.py       paths into JSON
json_scan.py       the walker along them
register.py        our functions: matches, get_json_object, now
string_buffers.py  columns of text as arrays of bytes
text_scan.py       its scanner
text_search.py     the language of matches
"""
