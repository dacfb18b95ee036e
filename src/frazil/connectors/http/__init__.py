"""HTTP servers: a source that polls, a sink that posts.

http_type.py    HTTP: the type `http`
http_source.py  HttpSource: polls a URL, by ETag or cursor
http_sink.py    HttpSink: posts records in batches
web_client.py   WebClient: requests to the server of a connection
"""
