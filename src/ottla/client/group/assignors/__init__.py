"""Partition assignors: pure, with the same results as Java's."""
