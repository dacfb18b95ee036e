"""Tests of the room `processes`."""
