"""Replication: the rules by which copies of a partition stay the same. Event and time in, decisions out."""
