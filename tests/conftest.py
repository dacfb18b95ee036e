"""What every test shares: how Hypothesis searches. Fixtures live next to their tests."""

from __future__ import annotations

from hypothesis import settings

# No deadline: a slow machine is not a broken promise. The blob replays a failure elsewhere.
settings.register_profile("frazil", deadline=None, print_blob=True)
settings.load_profile("frazil")
