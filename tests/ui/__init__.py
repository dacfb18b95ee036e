"""The web page in a real browser, in front of a real node."""
