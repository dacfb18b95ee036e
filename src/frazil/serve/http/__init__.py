"""serve/http: requests, routing, responses, OpenAPI.

app.py          App: the ASGI application
request.py      ApiRequest: a request and its parameters
params.py       types of parameters
router.py       Endpoint, Router: finds the endpoint of a request
handler.py      Handler: what endpoints share; cancels queries when the client disconnects
upload_body.py  UploadBody: carries a body to the thread that writes it
responses.py    responses, and the HTTP status of each error
row_streams.py  rows as Arrow, CSV and Parquet streams
events.py       server-sent events of live tails
shared_tails.py SharedTails: live tails of the same rows share one poll
static.py       StaticFiles: the web page
openapi.py      OpenAPI description of all endpoints
"""
