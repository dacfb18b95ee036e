"""Torture of COPY INTO and of pipes."""
