"""Segments that are rewritten: compaction and re-encryption."""
