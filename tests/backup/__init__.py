"""Tests of the room `backup`."""
