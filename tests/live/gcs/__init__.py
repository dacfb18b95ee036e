"""fake-gcs-server, a server of Google Cloud Storage, built from Go modules by hash.

server.py  the server as a separate process
go/        the module that names its version
"""
