"""ingest/http: OTLP/HTTP.

deadlines.py  bodies that must come in time
exports.py    what becomes of a request
request.py    what a request says about itself
responses.py  answers of OTLP/HTTP
server.py     OTLP/HTTP
"""
