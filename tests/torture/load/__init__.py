"""Torture of COPY INTO."""
