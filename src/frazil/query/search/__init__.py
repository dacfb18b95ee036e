"""query/search: the search language, filters, facets.

cursor.py    where a row stands, for pages
facets.py    which values there are, and how often
fields.py    which names can be searched for
filters.py   how a question becomes SQL
parser.py    the language of the search box
render.py    the question of a search, for somebody to read
severity.py  words for how bad something is
to_sql.py    what a text in it means for a table
"""
