"""Statements: their grammar, the files that keep definitions, the audit."""
