"""query/functions: our SQL functions.

register.py        QueryContext; registers matches, get_json_object, matches_regex,
                   label_value and now
search_parser.py   the grammar of searches, for `matches` and the search box
word_split.py      splits text into words
text_search.py     compiles a search of `matches`
text_scan.py       runs it over a column, compiled
json_path.py       get_json_object: paths into JSON
json_scan.py       finds values in JSON, compiled
map_hash.py        hash_maps: tells series apart, compiled
label_names.py     values of maps by the names of labels
string_buffers.py  buffers of string columns as numpy arrays
"""
