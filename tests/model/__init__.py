"""Fast tests of the room `model`."""
