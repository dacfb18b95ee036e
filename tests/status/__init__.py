"""Tests of the room `status`."""
