"""Models against the real thing: whatever Hypothesis does to both, they agree."""
