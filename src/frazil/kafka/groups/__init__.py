"""kafka/groups: consumer groups and their offsets."""
