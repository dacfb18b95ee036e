"""One suite for each seam, run over every implementation of it."""
