"""Databases that a pipeline writes to: rows, and which micro-batch they are of, in one transaction."""
