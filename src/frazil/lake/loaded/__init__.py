"""Tables that are loaded from files: how they are planned, written and committed."""
