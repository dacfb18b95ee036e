"""Tests of the writer process of a node."""
