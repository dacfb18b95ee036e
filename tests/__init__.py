"""Tests of Frazil, by layer: one folder per room, then house, property, contract, crash, live."""
