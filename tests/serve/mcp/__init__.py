"""Tools for agents, by the official client.

test_tools.py      the nine tools over the shop, over HTTP and standard input
test_bounds.py     every answer fits, and says what it left out
test_protocol.py   messages, versions, and pages of other sites
"""
