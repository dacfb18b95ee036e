"""Dockerfile, compose file, Helm chart and systemd unit.

test_files.py  what needs no tools: they name ports, flags, users and files that exist
__main__.py    `make deploycheck`: each one by a linter of its own, fetched once
"""
