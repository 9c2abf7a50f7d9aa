"""Offsets in commands: the bounds of partitions, resets, and offset files."""
