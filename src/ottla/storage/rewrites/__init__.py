"""Rewriting of segments: compaction and re-encryption."""
