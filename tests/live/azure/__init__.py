"""Azurite, a server of Azure Blob Storage, from npm by hash.

server.py  the server as a separate process
"""
