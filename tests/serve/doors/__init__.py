"""Doors: other tools' protocols."""
