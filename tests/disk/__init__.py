"""Fast tests of the room `disk`."""
