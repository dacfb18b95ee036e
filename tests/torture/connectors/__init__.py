"""Torture of connectors: processes of sources and sinks, their reader and their node are killed."""
