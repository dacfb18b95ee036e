"""Browser tests, one module per screen of the web page."""
