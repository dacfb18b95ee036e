"""serve/http: requests, routing, responses, OpenAPI.

app.py          App: what becomes of a request
field_docs.py   what is said of them, for the description
handler.py      Desk: what an endpoint works with; Asking: queries that end when nobody waits
openapi.py      all of them, described for programs
params.py       types of those values
request.py      Request: what somebody asks, and the values in it
responses.py    answers, and errors by number
router.py       Endpoint, Routes: one thing that can be asked for, and how it is found
row_streams.py  rows on their way: Arrow and CSV
static.py       Page: the web page, as it was built
"""
