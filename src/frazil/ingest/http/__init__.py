"""ingest/http: OTLP/HTTP, on `frazil.httpd`.

server.py     OtlpHttp: the port and its limits
exports.py    HttpExports: serves requests
request.py    HttpRequest: a request's head
deadlines.py  BodyReader: reads bodies within their limits
responses.py  responses in protobuf or JSON
"""
