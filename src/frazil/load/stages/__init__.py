"""Stages: folders and buckets that files are loaded from."""
