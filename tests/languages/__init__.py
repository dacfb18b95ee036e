"""Tests of PromQL, LogQL and TraceQL: what they answer beside others' answers, and plain Python."""
