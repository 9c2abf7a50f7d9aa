"""Replication: leaders, followers, and the connections between them."""
