"""Tests of loads into the log."""
