"""Fast tests of the room `log`."""
