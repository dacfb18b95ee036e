"""Torture of COPY INTO, into tables and into the log, and of pipes."""
